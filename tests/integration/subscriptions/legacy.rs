//! Legacy clients: notified of the resources that they subscribed to; of lists, also without a request.

use super::fixture::builder;
use crate::prelude::*;

#[tokio::test]
async fn resources_are_subscribed_to_in_every_legacy_revision() {
    for revision in LEGACY {
        let server = builder().build().unwrap();
        let handle = server.handle();
        let mut pipe = LineConnection::serve(&server, 1 << 16);
        pipe.shake_hands(revision.as_str()).await;
        let reply = pipe.request("sub", "resources/subscribe", json!({ "uri": "item://1" })).await;
        assert_eq!(reply["result"], json!({}), "{revision}");
        handle.resource_updated("item://2");
        handle.resource_updated("item://1");
        let updated = notification("notifications/resources/updated", json!({ "uri": "item://1" }));
        assert_eq!(pipe.message().await, updated, "{revision}");

        let reply = pipe.request("unsub", "resources/unsubscribe", json!({ "uri": "ITEM://1" })).await;
        assert_eq!(reply["result"], json!({}), "{revision}");
        handle.resource_updated("item://1");
        handle.resources_changed();
        let changed = notification("notifications/resources/list_changed", json!({}));
        assert_eq!(pipe.message().await, changed, "{revision}");

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
