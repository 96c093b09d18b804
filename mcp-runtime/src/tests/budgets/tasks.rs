//! The bounds of `capability/tasks`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};
use crate::capability::tasks::TaskOptions;

#[rustfmt::skip]
pub(super) const TASKS: Folder = Folder {
    budgets: &[
        budget("tasks that run", Count(|_| TaskOptions::new().max_running), "tasks.max_running", All, "an error", "capability/tasks/mod.rs"),
        budget("tasks that are kept", Count(|_| TaskOptions::new().max_kept), "tasks.max_kept", All, "an error", "capability/tasks/mod.rs"),
        budget("bytes of them", Bytes(|_| TaskOptions::new().max_kept_bytes), "", All, "an error; of a result, its task is `failed`", "capability/tasks/mod.rs"),
        budget("processes that run tasks of a shared store", FixedCount("MAX_LEASES"), "", All, "an error", "core/store/records/lease.rs"),
        budget("processes of which some that may run again are listed", FixedCount("MAX_LISTS"), "", All, "an error", "capability/tasks/presence.rs"),
        budget("bytes of their ids", FixedBytes("MAX_LISTED_BYTES"), "", All, "an error", "capability/tasks/presence.rs"),
    ],
    others: &[],
};
