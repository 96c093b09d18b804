//! A store that is away, slow, out of order or refuses; servers without keys, and with other keys.

use mcp_runtime::Server;
use mcp_tests::support::{AnyStore, BreakableStore, HttpRequest, HttpServer, server_key, text_of};
use serde_json::json;
use tokio::net::TcpListener;

use super::{
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
    }
}

#[tokio::test]
async fn requests_that_need_no_store_do_not_ask_it() {
    let store = BreakableStore::default();
    let shared: AnyStore = AnyStore::new(store.clone());
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
    let shared: AnyStore = AnyStore::new(store.clone());
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

    store.set_broken(false);
    assert_eq!(list.send(at.address).await.status, 200);
    assert_eq!(text_of(&retry.send(at.address).await.json()), "withdrawn");
}
