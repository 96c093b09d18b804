//! The bounds of `capability/tasks`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};
use crate::capability::tasks::TaskOptions;

#[rustfmt::skip]
pub(super) const TASKS: Folder = Folder {
    budgets: &[
        budget("tasks that run", Count(|_| TaskOptions::default().max_running), "tasks.max_running", All, "an error", "capability/tasks/mod.rs"),
        budget("tasks that are kept", Count(|_| TaskOptions::default().max_kept), "tasks.max_kept", All, "an error", "capability/tasks/table.rs"),
        budget("bytes of them", Bytes(|_| TaskOptions::default().max_kept_bytes), "", All, "an error; of a result, its task is `failed`", "capability/tasks/table.rs"),
        budget("processes that run tasks of a shared store", FixedCount("MAX_PROCESSES"), "", All, "an error", "capability/tasks/replica/lease.rs"),
        budget("replicas with subscribers of one task", FixedCount("MAX_WATCHERS"), "", All, "it is left out of the acknowledgement", "capability/tasks/replica/watch.rs"),
        budget("changes of tasks that other replicas were not told yet", FixedCount("MAX_UNSENT"), "", All, "are found in the store, later", "capability/tasks/replica/mod.rs"),
    ],
    others: &[
        ("capability/tasks/replica/mod.rs", &["MAX_IDS", "MAX_UNLISTED"]),
    ],
};
