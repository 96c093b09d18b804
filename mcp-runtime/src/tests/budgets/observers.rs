//! The bounds of `observers`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};

#[rustfmt::skip]
pub(super) const OBSERVERS: Folder = Folder {
    budgets: &[
        budget("series of one metric", FixedCount("MAX_SERIES"), "", All, "other requests are counted in one series", "observers/metrics/mod.rs"),
    ],
    others: &[
        // of one line of the audit log, which is not kept
        ("observers/audit.rs", &["MAX_LINE", "MAX_REST", "MAX_TEXT", "MAX_FIELD", "MAX_FIELDS", "MAX_NAME", "MAX_NAMES", "MAX_ID"]),
    ],
};
