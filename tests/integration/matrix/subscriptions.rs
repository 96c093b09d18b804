//! Changes of lists and resources: sent to the clients that subscribed to them and may see them.

use super::{Cell, Protocol, builder, capable, cells, connect_to, no_requests, tool};
use crate::prelude::*;

/// The client's next notification: the method, and the URI if it has one.
async fn next_notification(client: &mut Client) -> (String, Option<String>) {
    let message = client.next_message().await;
    assert!(message.get("id").is_none(), "{message}");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    (text(&message["method"]).expect("a notification"), text(&message["params"]["uri"]))
}

#[track_caller]
fn list(of: &str) -> (String, Option<String>) {
    (format!("notifications/{of}/list_changed"), None)
}

fn updated(uri: &str) -> (String, Option<String>) {
    ("notifications/resources/updated".into(), Some(uri.into()))
}

async fn listening(server: &Server, cell: Cell, filter: Value) -> Client {
    let mut client = connect_to(server, cell, capable(), no_requests).await;
    assert_eq!(client.listen(filter.clone()).await, filter, "{cell:?}");
    client
}

fn everything() -> Value {
    json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true })
}

#[tokio::test]
async fn a_batch_of_new_tools_sends_one_notification_to_subscribers() {
    for cell in cells("list changes") {
        let server = builder(&Gate::default()).build().unwrap();
        let handle = server.handle();
        let mut all = listening(&server, cell, everything()).await;
        let mut prompts = listening(&server, cell, json!({ "promptsListChanged": true })).await;
        handle
            .update(|tools| {
                tools.add(tool("a"));
                tools.add(tool("b"));
                tools.add(tool("a"));
                assert!(tools.remove_tool("b") && !tools.remove_tool("b"));
            })
            .unwrap();
        assert_eq!(next_notification(&mut all).await, list("tools"), "{cell:?}");
        let (tools, _) = all.list("tools/list", "tools").await;
        assert_eq!(tools.last().expect("tools")["name"], "a", "{cell:?}");
        assert_eq!(all.call("a", json!({})).await.text(), "done", "{cell:?}");
        // no notification without a change
        assert!(!handle.remove_tool("absent").unwrap());
        handle.resources_changed();
        assert_eq!(next_notification(&mut all).await, list("resources"), "{cell:?}");
        assert!(handle.remove_tool("a").unwrap());
        assert_eq!(next_notification(&mut all).await, list("tools"), "{cell:?}");
        handle.prompts_changed();
        assert_eq!(next_notification(&mut all).await, list("prompts"), "{cell:?}");

        // a legacy session cannot select lists: it is notified of all of them
        if cell.1 == Protocol::Legacy && cell.0 != Transport::Memory {
            assert_eq!(next_notification(&mut prompts).await, list("tools"), "{cell:?}");
            // changes that a client has not read yet may be merged into one
            while next_notification(&mut prompts).await != list("prompts") {}
        } else {
            assert_eq!(next_notification(&mut prompts).await, list("prompts"), "{cell:?}");
        }
    }
}

#[tokio::test]
async fn an_update_reaches_the_subscribers_of_its_uri_only() {
    for cell in cells("subscriptions") {
        let server = builder(&Gate::default()).build().unwrap();
        let handle = server.handle();
        let filter = |uris: &[&str]| json!({ "resourceSubscriptions": uris, "promptsListChanged": true });
        let mut one = listening(&server, cell, filter(&["item://a/1", "item://a/2"])).await;
        let mut other = listening(&server, cell, filter(&["item://a/2"])).await;
        let mut none = listening(&server, cell, json!({ "promptsListChanged": true })).await;
        for uri in ["item://a/1", "item://a/3", "page://one", "item://a/2"] {
            handle.resource_updated(uri);
        }
        handle.prompts_changed();
        for (client, expected) in [
            (&mut one, vec![updated("item://a/1"), updated("item://a/2"), list("prompts")]),
            (&mut other, vec![updated("item://a/2"), list("prompts")]),
            (&mut none, vec![list("prompts")]),
        ] {
            for expected in expected {
                assert_eq!(next_notification(client).await, expected, "{cell:?}");
            }
        }
        // a function publishes as well, and its caller reads the change
        let published = other.call("publish", json!({ "what": "item://a/1" })).await;
        assert_eq!(published.reply["content"], json!([]), "{cell:?}");
        assert_eq!(next_notification(&mut one).await, updated("item://a/1"), "{cell:?}");
        let read = one.request("resources/read", json!({ "uri": "item://a/1" })).await.reply;
        assert_eq!(read["contents"][0]["text"], "1 in a", "{cell:?}");
    }
}
