//! How subscriptions end on a connection that they share with calls.

use mcp_runtime::prelude::*;
use mcp_tests::support::{LineConnection, SUBSCRIPTION, within};
use serde_json::{Value, json};

/// Publishes a change
#[mcp_tool]
fn announce(server: &ServerHandle) {
    server.tools_changed();
}

/// The end of a subscription: its result, then the notification that the stream is closed.
#[track_caller]
fn assert_end(messages: &[Value], id: &str) {
    let [result, cancelled] = messages else { panic!("{messages:?}") };
    assert_eq!(
        (&result["id"], &result["result"]["_meta"][SUBSCRIPTION]),
        (&json!(id), &json!(id)),
        "{result}"
    );
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], id, "{cancelled}");
}

#[tokio::test]
async fn the_result_of_a_subscription_comes_before_its_cancellation() {
    within(async {
        let server = mcp_runtime::server!().tool::<announce>().build().expect("a server");
        let mut client = LineConnection::serve(&server, 1 << 16);
        client.listen("told", json!({ "toolsListChanged": true })).await;
        server.handle().end_subscriptions();
        assert_end(&client.messages(2).await, "told");
        client.listen("again", json!({ "toolsListChanged": true })).await;
        client.close_input().await;
        assert_end(&client.messages(2).await, "again");
        assert_eq!(client.next().await, None);
        client.served().await;
    })
    .await;
}
