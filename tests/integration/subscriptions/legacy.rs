//! Legacy clients: notified of lists without a request, and of the resources that they subscribed to.

use super::fixture::{builder, tool};
use crate::prelude::*;

async fn connected(server: &Server, revision: &str) -> LineConnection {
    let mut pipe = LineConnection::serve(server, 1 << 16);
    pipe.shake_hands(revision).await;
    // a response to this request shows that the subscription exists
    assert_eq!(pipe.request("ready", "ping", json!({})).await["result"], json!({}));
    pipe
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params })
}

#[tokio::test]
async fn legacy_clients_are_notified_of_lists_and_subscribed_resources() {
    for revision in LEGACY {
        let server = builder().build().unwrap();
        let handle = server.handle();
        let mut pipe = connected(&server, revision.as_str()).await;
        handle.update(|tools| ["a", "b"].map(|name| tools.add(tool(name))).into_iter().collect()).unwrap();
        assert_eq!(pipe.message().await, notification("tools/list_changed", &json!({})), "{revision}");
        handle.prompts_changed();
        assert_eq!(pipe.message().await, notification("prompts/list_changed", &json!({})), "{revision}");

        let reply = pipe.request("sub", "resources/subscribe", json!({ "uri": "item://1" })).await;
        assert_eq!(reply["result"], json!({}), "{revision}");
        handle.resource_updated("item://2");
        handle.resource_updated("item://1");
        let updated = notification("resources/updated", &json!({ "uri": "item://1" }));
        assert_eq!(pipe.message().await, updated, "{revision}");

        let reply = pipe.request("unsub", "resources/unsubscribe", json!({ "uri": "ITEM://1" })).await;
        assert_eq!(reply["result"], json!({}), "{revision}");
        handle.resource_updated("item://1");
        handle.resources_changed();
        assert_eq!(pipe.message().await, notification("resources/list_changed", &json!({})), "{revision}");
    }
}

/// A session over HTTP, and its standalone stream.
async fn standalone(served: &HttpServer, revision: &str) -> (String, Value, EventStream) {
    let hello = HttpRequest::initialize(revision).send(served.address).await;
    let session = hello.session();
    let get = HttpRequest::standalone_stream(&session);
    let events = EventStream::open(&get, served.address).await.expect("a stream");
    (session, hello.json()["result"]["capabilities"].clone(), events)
}

#[tokio::test]
async fn a_session_is_notified_on_its_standalone_stream() {
    for revision in LEGACY {
        let server = builder().build().unwrap();
        let handle = server.handle();
        let served = HttpServer::of(&server).await;
        let (session, capabilities, mut events) = standalone(&served, revision.as_str()).await;
        assert_eq!(capabilities["resources"], json!({ "listChanged": true, "subscribe": true }));
        let send = async |method: &str, uri: &str| {
            HttpRequest::legacy(&session, 1, method, &json!({ "uri": uri })).send(served.address).await.json()
        };
        assert_eq!(send("resources/subscribe", "item://1").await["result"], json!({}), "{revision}");
        assert_eq!(send("resources/subscribe", "nothing://here").await["error"]["code"], -32002);
        for uri in ["item://2", "item://1"] {
            handle.resource_updated(uri);
        }
        let updated = notification("resources/updated", &json!({ "uri": "item://1" }));
        assert_eq!(events.next().await.unwrap(), updated, "{revision}");
        assert_eq!(send("resources/unsubscribe", "item://1").await["result"], json!({}), "{revision}");
        handle.resource_updated("item://1");
        handle.add(tool("late")).unwrap();
        let listed = notification("tools/list_changed", &json!({}));
        assert_eq!(events.next().await.unwrap(), listed, "{revision}");
    }
}

#[tokio::test]
async fn clients_are_notified_of_kinds_of_items_that_the_server_may_get_later() {
    // the server has only tools, and a handle
    let server = mcp_runtime::server!().add(tool("one")).build().unwrap();
    let handle = server.handle();
    let served = HttpServer::of(&server).await;
    let (_, capabilities, mut events) = standalone(&served, "2025-11-25").await;
    let declared = json!({
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "tools": { "listChanged": true },
    });
    assert_eq!(capabilities, declared);
    handle.prompts_changed();
    assert_eq!(events.next().await.unwrap()["method"], "notifications/prompts/list_changed");
    handle.resources_changed();
    assert_eq!(events.next().await.unwrap()["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn an_unknown_resource_cannot_be_subscribed_to() {
    for revision in LEGACY {
        let server = builder().build().unwrap();
        let mut pipe = connected(&server, revision.as_str()).await;
        let reply = pipe.request("sub", "resources/subscribe", json!({ "uri": "nothing://here" })).await;
        assert_eq!(reply["error"]["code"], -32002, "{revision}");
        assert_eq!(reply["error"]["data"], json!({ "uri": "nothing://here" }));
        let reply = pipe.request("unsub", "resources/unsubscribe", json!({ "uri": "nothing://here" })).await;
        assert_eq!(reply["result"], json!({}), "{revision}");
        for params in [json!({}), json!({ "uri": 1 })] {
            let reply = pipe.request("bad", "resources/subscribe", params).await;
            assert_eq!(reply["error"]["code"], -32602, "{revision}");
        }
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_initialized_notification() {
    let server = builder().build().unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    server.handle().tools_changed();
    pipe.initialize("2025-11-25").await;
    server.handle().prompts_changed();
    // both in one write: the response to `initialize` must be first in any case
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    pipe.request("ready", "ping", json!({})).await;
    server.handle().resources_changed();
    assert_eq!(pipe.message().await["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn legacy_and_modern_clients_subscribe_in_memory() {
    for revision in LEGACY {
        let server = builder().build().unwrap();
        let client = TestServer::of(&server).legacy(revision);
        let filter =
            json!({ "promptsListChanged": true, "resourceSubscriptions": ["item://1", "nothing://here"] });
        let mut changes = client.listen(filter).await;
        let honoured = json!({ "promptsListChanged": true, "resourceSubscriptions": ["item://1"] });
        assert_eq!(changes.acknowledged(), &honoured);
        for what in ["tools", "prompts", "item://1"] {
            client.call("publish", json!({ "what": what })).await.expect_ok();
        }
        assert_eq!(changes.next().await, notification("prompts/list_changed", &json!({})));
        assert_eq!(changes.next().await, notification("resources/updated", &json!({ "uri": "item://1" })));
        assert_eq!(changes.try_next(), None);
    }
}
