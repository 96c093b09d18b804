//! The examples as programs, and those that need crates that take long to compile.

mod clients;
mod notes;
#[cfg(unix)]
mod on_unix;
mod programs;
mod repo;

#[path = "../../../examples/shared_store/sqlite.rs"]
pub(crate) mod shared_store;
