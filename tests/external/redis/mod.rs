//! Redis and Valkey, as stores that replicas share. Each test starts servers of its own, and is skipped without
//! `redis-server`; not every system has Valkey.

mod changes;
mod killed;
mod left;
mod operations;
mod rates;
mod reached;
mod tasks;
mod trouble;
mod webhooks;

use std::sync::Arc;

use mcp_external_tests::{redis::RedisServer, skip};
use mcp_runtime::{
    store::{Redis, Shared, Table},
    testing::check_shared,
};
use mcp_tests::{programs::workspace_dir, support::within};

use crate::shared::TestStore;

/// A store on a server.
fn store(name: &'static str, server: &Arc<RedisServer>) -> TestStore {
    let url = server.url();
    let open = move || -> Arc<dyn Shared> { Arc::new(Redis::at(&url)) };
    let read = server.clone();
    let content = move || (read.everything(), read.keys());
    TestStore {
        name,
        open: Box::new(open),
        content: Some(Box::new(content)),
        _kept: Box::new(server.clone()),
    }
}

/// The servers that this machine has, and a store on each.
fn servers(test: &str) -> Vec<(Arc<RedisServer>, TestStore)> {
    let mut servers = Vec::new();
    let mut add = |name, server: RedisServer| {
        let server = Arc::new(server);
        servers.push((server.clone(), store(name, &server)));
    };
    match RedisServer::start() {
        Ok(server) => add("redis", server),
        Err(missing) => skip(test, &missing),
    }
    if let Ok(server) = RedisServer::start_program("valkey-server", &[]) {
        add("valkey", server);
    }
    servers
}

/// The stores of [`servers`].
pub(crate) fn stores(test: &str) -> Vec<TestStore> {
    servers(test).into_iter().map(|(_, store)| store).collect()
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
    let page = std::fs::read_to_string(workspace_dir().join("docs/cluster.md")).expect("the page");
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
