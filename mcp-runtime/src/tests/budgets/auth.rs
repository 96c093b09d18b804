//! The bounds of `auth`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};

const GUESSES: &str = "auth/callers/guesses.rs";

#[rustfmt::skip]
pub(super) const AUTH: Folder = Folder {
    budgets: &[
        budget("new tokens of an address that are verified at once", FixedCount("MAX_VERIFYING"), "", Client, "wait", GUESSES),
        budget("new tokens that wait for that", FixedCount("MAX_WAITING"), "", All, "`429` with `Retry-After`", GUESSES),
        budget("tokens that are known at their addresses, and as many that were told to come again", FixedCount("MAX_MARKS"), "", All, "the oldest are forgotten", GUESSES),
        budget("refusals of tokens that are kept", FixedCount("MAX_REFUSED"), "", All, "are forgotten", GUESSES),
        budget("tokens that are known to be valid, for one principal a twentieth of them", FixedCount("CACHED_TOKENS"), "", All, "are verified with each request", "auth/callers/oauth.rs"),
        budget("proofs that were used", FixedCount("MAX_PROOFS"), "", All, "`401`", "auth/callers/builder.rs"),
    ],
    others: &[],
};
