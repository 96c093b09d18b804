//! The `app` example without its page, which `tests/external/apps` opens in a browser.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/app/main.rs"]
mod example;

#[tokio::test]
async fn votes_are_counted_and_the_model_gets_instructions() {
    let server = TestServer::new(example::server()).unwrap();
    server.call("vote", json!({ "drink": "tea" })).await.expect_ok();
    server.call("vote", json!({ "drink": "beer" })).await.expect_failure("drink");
    let poll = server.call("poll", json!({})).await;
    poll.expect_json(&json!({ "tea": 1, "coffee": 0, "water": 0 }));
    assert!(poll.text().contains("call `vote`"), "{poll}");
    let shows = json!({
        "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } }
    });
    let host = server.answering(shows, |method, _| panic!("asked for `{method}`"));
    let poll = host.call("poll", json!({})).await;
    assert!(poll.expect_ok().text().contains("The user sees the poll"), "{poll}");
}
