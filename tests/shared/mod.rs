//! What replicas share: the stores themselves, and servers on them. The same tests run with the store in memory; `tests/external`
//! runs them with Redis, Valkey and an example's store in SQLite.

pub(crate) mod changes;
mod operations;
pub(crate) mod rates;
pub(crate) mod replicas;
mod sessions;
pub(crate) mod tasks;
mod trouble;
pub(crate) mod webhooks;

use std::any::Any;

use futures_util::future::join_all;
use mcp_runtime::testing::check_shared;
use mcp_tests::support::{AnyStore, within};

/// Everything that a store keeps, as others may read it, and in how many milliseconds each key expires.
pub(crate) type Content = (String, Vec<(String, i64)>);

/// A store for one test, as each of its replicas opens it.
pub(crate) struct TestStore {
    pub(crate) name: &'static str,
    pub(crate) open: Box<dyn Fn() -> AnyStore + Send + Sync>,
    /// Of a store outside of this process.
    pub(crate) content: Option<Box<dyn Fn() -> Content>>,
    /// Dropped with it.
    pub(crate) _kept: Box<dyn Any>,
}

impl TestStore {
    /// Those of this test binary.
    fn all(test: &str) -> Vec<Self> {
        crate::stores(test)
    }

    /// The store as one more replica opens it.
    pub(crate) fn open(&self) -> AnyStore {
        (self.open)()
    }
}

/// Runs a test with all stores at the same time, since it waits most of the time.
async fn with_each_store(test: &str, run: impl AsyncFn(&TestStore)) {
    let stores = TestStore::all(test);
    join_all(stores.iter().map(|store| run(store))).await;
}

#[tokio::test]
async fn every_store_does_what_the_trait_says() {
    let run = async |store: &TestStore| within(check_shared(&store.open())).await;
    with_each_store("every_store_does_what_the_trait_says", run).await;
}
