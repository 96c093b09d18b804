//! What replicas share: the stores themselves, and servers on them. The same tests run with the store in memory, with
//! Redis, with Valkey where it is installed, and with an example's store in SQLite. Those with Redis start a `redis-server`
//! each, and are skipped without it.

mod changes;
mod events;
mod killed;
mod left;
mod operations;
mod rates;
mod reached;
mod replicas;
mod sessions;
#[path = "../../examples/shared_store/sqlite.rs"]
mod sqlite;
mod tasks;
mod trouble;
mod webhooks;

use std::{path::PathBuf, sync::Arc};

use futures_util::future::join_all;
use mcp_runtime::{
    store::{Memory, Redis, Shared, Table},
    testing::check_shared,
};
use mcp_tests::{
    external::{redis::RedisServer, skip},
    support::within,
};

/// A store for one test, as each of its replicas opens it.
struct TestStore {
    name: &'static str,
    open: Box<dyn Fn() -> Arc<dyn Shared> + Send + Sync>,
    redis: Option<RedisServer>,
    file: Option<PathBuf>,
}

impl TestStore {
    fn memory() -> Self {
        let memory = Memory::default();
        Self { name: "memory", open: Box::new(move || Arc::new(memory.clone())), redis: None, file: None }
    }

    fn sqlite(test: &str) -> Self {
        let file = std::env::temp_dir().join(format!("mcp-{test}-{}.sqlite", std::process::id()));
        let _from_before = std::fs::remove_file(&file);
        let path = file.clone();
        let open = move || -> Arc<dyn Shared> { Arc::new(sqlite::Sqlite::open(&path).expect("a file")) };
        Self { name: "sqlite", open: Box::new(open), redis: None, file: Some(file) }
    }

    fn redis(server: RedisServer) -> Self {
        let url = server.url();
        let open = move || -> Arc<dyn Shared> { Arc::new(Redis::at(&url)) };
        Self { name: "redis", open: Box::new(open), redis: Some(server), file: None }
    }

    /// All of them, or those that this machine has.
    fn all(test: &str) -> Vec<Self> {
        let mut stores = vec![Self::memory(), Self::sqlite(test)];
        match RedisServer::start() {
            Ok(server) => stores.push(Self::redis(server)),
            Err(missing) => skip(test, &missing),
        }
        // not every system has it
        if let Ok(server) = RedisServer::start_program("valkey-server", &[]) {
            let mut valkey = Self::redis(server);
            valkey.name = "valkey";
            stores.push(valkey);
        }
        stores
    }

    /// The store as one more replica opens it.
    fn open(&self) -> Arc<dyn Shared> {
        (self.open)()
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            if let Some(file) = &self.file {
                let _best_effort = std::fs::remove_file(format!("{}{suffix}", file.display()));
            }
        }
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

#[tokio::test]
async fn nothing_in_redis_is_without_an_expiry_and_nothing_can_be_read() {
    let server = match RedisServer::start() {
        Ok(server) => server,
        Err(missing) => return skip("nothing_in_redis_is_without_an_expiry", &missing),
    };
    within(async {
        check_shared(&Redis::at(server.url()).prefix("shop")).await;
        let kept = server.keys();
        assert!(kept.len() > 3, "{kept:?}");
        for (key, expires) in kept {
            assert!(key.starts_with("shop:") && expires > 0, "{key} {expires}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_user_of_the_page_may_do_what_a_server_needs_and_no_more() {
    let server = match RedisServer::start() {
        Ok(server) => server,
        Err(missing) => return skip("the_user_of_the_page_may_do_what_a_server_needs", &missing),
    };
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cluster.md"))
        .expect("the page");
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER mcp ")).expect("a user");
    let answer = server.command(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(answer, "+OK\r\n");
    within(async {
        let url = server.url().replace("redis://", "redis://mcp:password@");
        check_shared(&Redis::at(&url)).await;
        let other = Redis::at(&url).prefix("other");
        let table = Table::new("a", 1, 1, 100);
        assert!(other.get(&table, "a").await.is_err() && other.publish("a", b"").await.is_err());
    })
    .await;
}
