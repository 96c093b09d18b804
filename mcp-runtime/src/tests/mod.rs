//! Tests of all folders.

#[cfg(feature = "http")]
mod budgets;
