//! The bounds of `redis`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};

#[rustfmt::skip]
pub(super) const REDIS: Folder = Folder {
    budgets: &[
        budget("operations that wait for an answer of Redis", FixedCount("MAX_OPERATIONS"), "", All, "fail within two seconds", "redis/link.rs"),
    ],
    others: &[],
};
