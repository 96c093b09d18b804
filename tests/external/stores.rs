//! The stores that replicas share: Redis and Valkey, if this machine has them, and the example's in SQLite.

use mcp_tests::support::{AnyStore, TestFolder};

use crate::{examples::shared_store::Sqlite, redis, shared::TestStore};

fn sqlite(test: &str) -> TestStore {
    let folder = TestFolder::default();
    let path = folder.join(format!("{test}.sqlite"));
    let open = move || -> AnyStore { AnyStore::new(Sqlite::open(&path).expect("a file")) };
    TestStore { name: "sqlite", open: Box::new(open), content: None, _kept: Box::new(folder) }
}

/// Each of them, for a test.
pub(crate) fn stores(test: &str) -> Vec<TestStore> {
    let mut stores = redis::stores(test);
    stores.push(sqlite(test));
    stores
}
