//! Clients that have shaken hands, on a connection of their own: told by themselves, and of what they subscribed to.

use mcp_runtime::testing::TestServer;
use mcp_tests::support::{EventStream, HttpRequest, HttpServer, LineConnection, within};
use serde_json::{Value, json};

use super::fixture::{builder, tool};
use crate::common::LEGACY;

async fn connected(server: &mcp_runtime::Server, revision: &str) -> LineConnection {
    let mut pipe = LineConnection::serve(server, 1 << 16);
    pipe.shake_hands(revision).await;
    // a client that has this reply is subscribed
    assert_eq!(pipe.request("ready", "ping", json!({})).await["result"], json!({}));
    pipe
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params })
}

#[tokio::test]
async fn every_legacy_revision_is_told_of_lists_and_of_subscribed_resources() {
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

/// A session over HTTP, and a standing stream of it.
async fn standing(served: &HttpServer, revision: &str) -> (String, Value, EventStream) {
    let hello = HttpRequest::initialize(revision).send(served.address).await;
    let session = hello.session();
    let get = HttpRequest::standalone_stream(&session);
    let events = EventStream::open(&get, served.address).await.expect("a stream");
    (session, hello.json()["result"]["capabilities"].clone(), events)
}

#[tokio::test]
async fn a_session_over_http_is_told_on_its_standing_stream() {
    within(async {
        for revision in LEGACY {
            let server = builder().build().unwrap();
            let handle = server.handle();
            let served = HttpServer::of(&server).await;
            let (session, capabilities, mut events) = standing(&served, revision.as_str()).await;
            assert_eq!(capabilities["resources"], json!({ "listChanged": true, "subscribe": true }));
            let send = async |method: &str, uri: &str| {
                HttpRequest::legacy(&session, 1, method, &json!({ "uri": uri }))
                    .send(served.address)
                    .await
                    .json()
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
            handle.add_tool(tool("late")).unwrap();
            let listed = notification("tools/list_changed", &json!({}));
            assert_eq!(events.next().await.unwrap(), listed, "{revision}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_not_declared_is_not_told() {
    within(async {
        // it has tools only
        let server = mcp_runtime::server!().add_tool(tool("one")).build().unwrap();
        let handle = server.handle();
        let served = HttpServer::of(&server).await;
        let (_, capabilities, mut events) = standing(&served, "2025-11-25").await;
        assert_eq!(capabilities, json!({ "tools": { "listChanged": true } }));
        handle.prompts_changed();
        handle.resources_changed();
        handle.tools_changed();
        assert_eq!(events.next().await.unwrap()["method"], "notifications/tools/list_changed");
    })
    .await;
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
async fn nothing_is_told_before_the_client_goes_on_after_the_handshake() {
    let server = builder().build().unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    server.handle().tools_changed();
    pipe.initialize("2025-11-25").await;
    server.handle().prompts_changed();
    // both in one piece: the reply to the handshake must be first in any case
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    pipe.request("ready", "ping", json!({})).await;
    server.handle().resources_changed();
    assert_eq!(pipe.message().await["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn a_client_listens_in_memory_in_either_era() {
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
