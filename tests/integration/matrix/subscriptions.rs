//! What changes while clients are there: lists and resources, told to those who may know and want to.

use std::sync::Arc;

use mcp_tests::support::{Client, Transport};
use serde_json::{Value, json};

use super::{Cell, Era, Seen, builder, capable, cells, connect_to, nobody_asks, tool};

/// What the client is told next: the method, and the URI if there is one.
async fn told(client: &mut Client) -> (String, Option<String>) {
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

async fn listening(server: &mcp_runtime::Server, cell: Cell, filter: Value) -> Client {
    let mut client = connect_to(server, cell, capable(), nobody_asks).await;
    assert_eq!(client.listen(filter.clone()).await, filter, "{cell:?}");
    client
}

fn everything() -> Value {
    json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true })
}

#[tokio::test]
async fn a_batch_of_tools_is_one_change_that_whoever_asked_is_told_of() {
    for cell in cells("lists that change") {
        let server = builder(&Arc::<Seen>::default()).build().unwrap();
        let handle = server.handle();
        let mut all = listening(&server, cell, everything()).await;
        let mut prompts = listening(&server, cell, json!({ "promptsListChanged": true })).await;
        handle
            .update(|tools| {
                tools.add(tool("a"));
                tools.add(tool("b"));
                tools.add(tool("a"));
                assert!(tools.remove("b") && !tools.remove("b"));
            })
            .unwrap();
        assert_eq!(told(&mut all).await, list("tools"), "{cell:?}");
        let (tools, _) = all.list("tools/list", "tools").await;
        assert_eq!(tools.last().expect("tools")["name"], "a", "{cell:?}");
        assert_eq!(all.call("a", json!({})).await.text(), "done", "{cell:?}");
        // nothing has changed
        assert!(!handle.remove_tool("absent").unwrap());
        handle.resources_changed();
        assert_eq!(told(&mut all).await, list("resources"), "{cell:?}");
        assert!(handle.remove_tool("a").unwrap());
        assert_eq!(told(&mut all).await, list("tools"), "{cell:?}");
        handle.prompts_changed();
        assert_eq!(told(&mut all).await, list("prompts"), "{cell:?}");

        // a session on a wire cannot say which lists it wants: it is told of all of them
        if cell.1 == Era::Legacy && cell.0 != Transport::Memory {
            assert_eq!(told(&mut prompts).await, list("tools"), "{cell:?}");
            // what it has not read of yet may be one change
            while told(&mut prompts).await != list("prompts") {}
        } else {
            assert_eq!(told(&mut prompts).await, list("prompts"), "{cell:?}");
        }
    }
}

#[tokio::test]
async fn an_update_reaches_the_subscribers_of_its_uri_only() {
    for cell in cells("subscriptions") {
        let server = builder(&Arc::<Seen>::default()).build().unwrap();
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
                assert_eq!(told(client).await, expected, "{cell:?}");
            }
        }
        // a function publishes as well, and its caller reads what has changed
        let published = other.call("publish", json!({ "what": "item://a/1" })).await;
        assert_eq!(published.reply["content"], json!([]), "{cell:?}");
        assert_eq!(told(&mut one).await, updated("item://a/1"), "{cell:?}");
        let read = one.request("resources/read", json!({ "uri": "item://a/1" })).await.reply;
        assert_eq!(read["contents"][0]["text"], "1 in a", "{cell:?}");
    }
}
