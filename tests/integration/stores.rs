//! The stores that are tested without other programs.

#[path = "../../examples/shared_store/sqlite.rs"]
mod sqlite;

use mcp_runtime::store::Memory;
use mcp_tests::support::AnyStore;

use crate::{prelude::*, shared::TestStore};

fn memory() -> TestStore {
    let memory = Memory::default();
    let open = move || -> AnyStore { AnyStore::new(memory.clone()) };
    TestStore { name: "memory", open: Box::new(open), content: None, _kept: Box::new(()) }
}

fn sqlite(test: &str) -> TestStore {
    let folder = TestFolder::default();
    let path = folder.join(format!("{test}.sqlite"));
    let open = move || -> AnyStore { AnyStore::new(sqlite::Sqlite::open(&path).expect("a file")) };
    TestStore { name: "sqlite", open: Box::new(open), content: None, _kept: Box::new(folder) }
}

/// Each of them, for a test.
pub(crate) fn stores(test: &str) -> Vec<TestStore> {
    vec![memory(), sqlite(test)]
}
