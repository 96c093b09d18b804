//! A store that is away, slow, out of order or refuses; servers without keys, and with other keys.

use std::{sync::Arc, time::Duration};

use mcp_runtime::{
    Server,
    store::{Redis, Shared},
};
use mcp_tests::{
    external::{redis::RedisServer, skip},
    support::{BreakableStore, HttpRequest, HttpServer, server_key, text_of, within},
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

use crate::{
    TestStore,
    replicas::{agreed, call, echo, server},
};

#[tokio::test]
async fn a_server_without_keys_does_not_start() {
    let store = BreakableStore::default();
    let built =
        Server::builder("replicas", "1").tool::<echo>().shared(store.clone()).build().expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let refused = built.clone().serve_http_on(listener).await.expect_err("no keys").to_string();
    assert!(refused.contains("has no keys") && refused.contains("MCP_SERVER_KEYS"), "{refused}");
    let (read, write) = tokio::io::duplex(64);
    assert!(built.serve(read, write).await.is_err());
    assert!(built.into_service().is_err());
    assert_eq!(store.operations(), 0);
}

#[tokio::test]
async fn a_replica_with_other_keys_does_not_start() {
    for store in TestStore::all("a_replica_with_other_keys_does_not_start") {
        within(async {
            let with = |name: &str, keys: &[u8]| {
                let keys: Vec<_> = keys.iter().map(|first| server_key(*first)).collect();
                let builder = Server::builder(name, "1").stores(|stores| stores.keys(keys));
                builder.tool::<echo>().shared(store.open()).build().expect("a server")
            };
            let starts = async |server: Server| {
                let (read, write) = tokio::io::duplex(64);
                drop(tokio::io::split(write));
                server.serve(read, tokio::io::sink()).await.map_err(|error| error.to_string())
            };
            starts(with("replicas", &[1])).await.expect("the first");
            let refused = starts(with("replicas", &[2])).await.expect_err("other keys");
            assert!(refused.contains("have other keys"), "{}: {refused}", store.name);
            starts(with("another", &[2])).await.expect("another server");
            // each step of a rotation
            for keys in [&[1, 2], &[2, 1], &[2]] as [&[u8]; 3] {
                starts(with("replicas", keys)).await.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
            }
            starts(with("replicas", &[1])).await.expect_err("the old key is gone");
        })
        .await;
    }
}

#[tokio::test]
async fn requests_that_need_no_store_do_not_ask_it() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    let at = HttpServer::start(server(&shared)).await;
    let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
    assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
    let before = store.operations();
    for _ in 0..20 {
        assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
    }
    assert_eq!(store.operations(), before);
}

#[tokio::test]
async fn a_store_out_of_order_refuses_what_needs_it_and_nothing_else() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    let at = HttpServer::start(server(&shared)).await;
    let lenient = server(&shared).stores(|stores| stores.allow_unchecked_sessions());
    let lenient = HttpServer::start(lenient).await;
    let initialize = HttpRequest::initialize("2025-11-25").header("x-user", "ada");
    let id = initialize.send(at.address).await.session();
    let list = HttpRequest::legacy(&id, 1, "tools/list", &json!({})).header("x-user", "ada");
    let end = HttpRequest::new("DELETE").session(&id).header("x-user", "ada");
    let retry = agreed(&at).await;

    store.set_broken(true);
    let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
    assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
    assert!(text_of(&retry.send(at.address).await.json()).contains("cannot be told"), "refused, not allowed");
    let statuses = [list.send(at.address).await.status, end.send(at.address).await.status];
    assert_eq!(statuses, [503, 503], "a session may have ended, and does not end");
    assert_eq!(list.send(lenient.address).await.status, 200);
    let cut = call("long", json!({})).send(at.address).await.json();
    assert!(cut.to_string().contains("call 'long' again"), "as if nothing were kept: {cut}");

    store.set_broken(false);
    assert_eq!(list.send(at.address).await.status, 200);
    assert_eq!(text_of(&retry.send(at.address).await.json()), "withdrawn");
}

/// Waits until a call that needs the store succeeds.
async fn until_back(at: &HttpServer) {
    for _ in 0..200 {
        let retry = agreed(at).await;
        if text_of(&retry.send(at.address).await.json()) == "withdrawn" {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("the store is not reached again");
}

#[tokio::test]
async fn redis_may_end_hang_refuse_and_come_back() {
    let redis = match RedisServer::start() {
        Ok(redis) => redis,
        Err(missing) => return skip("redis_may_end_hang_refuse_and_come_back", &missing),
    };
    within(async {
        let store: Arc<dyn Shared> = Arc::new(Redis::at(redis.url()));
        let at = HttpServer::start(server(&store)).await;
        let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
        let refused_in_time = async || {
            let retry = agreed(&at).await;
            let sent = retry.send(at.address);
            let reply = timeout(Duration::from_secs(10), sent).await.expect("an answer").json();
            let told = text_of(&reply);
            assert!(told.contains("cannot be told"), "{told}");
            assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
        };
        until_back(&at).await;

        redis.kill();
        refused_in_time().await;
        // a replica can start meanwhile
        let another = HttpServer::start(server(&store)).await;
        assert_eq!(text_of(&hi.send(another.address).await.json()), "hi");
        redis.restart(&[]);
        until_back(&at).await;
        until_back(&another).await;

        redis.pause();
        refused_in_time().await;
        refused_in_time().await;
        redis.go_on();
        until_back(&at).await;

        // a connection that is ended is opened again
        redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        until_back(&at).await;

        redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
        refused_in_time().await;
        redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
        until_back(&at).await;

        redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
        refused_in_time().await;
        redis.command(&["REPLICAOF", "NO", "ONE"]);
        until_back(&at).await;
    })
    .await;
}

#[tokio::test]
async fn a_wrong_password_is_an_error_when_serving_begins() {
    let redis = match RedisServer::start() {
        Ok(redis) => redis,
        Err(missing) => return skip("a_wrong_password_is_an_error", &missing),
    };
    within(async {
        redis.command(&["CONFIG", "SET", "requirepass", "sesame"]);
        let starts = async |url: String| {
            let store: Arc<dyn Shared> = Arc::new(Redis::at(url));
            let server = server(&store).build().expect("a server");
            server.serve(tokio::io::empty(), tokio::io::sink()).await.map_err(|error| error.to_string())
        };
        let with = |user: &str| redis.url().replace("redis://", &format!("redis://{user}"));
        starts(with(":sesame@")).await.expect("the password");
        for wrong in [with(""), with(":open@"), with("eve:sesame@")] {
            let error = starts(wrong).await.expect_err("refused");
            assert!(error.contains("Redis refuses the connection") && !error.contains("open@"), "{error}");
        }
    })
    .await;
}

#[test]
fn a_url_that_cannot_work_is_an_error_of_build() {
    let refused = |store: Redis| {
        let built = Server::builder("replicas", "1").tool::<echo>().shared(store).build();
        built.expect_err("not a URL of Redis").to_string()
    };
    for wrong in ["http://127.0.0.1", "redis+cluster://127.0.0.1", "redis://", "redis://:sesame@", "sesame"] {
        let error = refused(Redis::at(wrong));
        assert!(error.contains("Redis") && !error.contains("sesame"), "{wrong}: {error}");
    }
    let error = refused(Redis::at("rediss://127.0.0.1").root_certificates("no certificate"));
    assert!(error.contains("not in PEM"), "{error}");
    let error = refused(Redis::at("redis://127.0.0.1").root_certificates("no certificate"));
    assert!(error.contains("write `rediss://`"), "{error}");
}
