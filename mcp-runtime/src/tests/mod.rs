//! Tests of all folders.

#[cfg(all(feature = "events", feature = "http", feature = "tasks"))]
mod budgets;
