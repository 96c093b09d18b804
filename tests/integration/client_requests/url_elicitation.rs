//! URL elicitation: which clients support it, its ids, and the completion notification.

use mcp_runtime::client_request::ClientRequestError;

use super::{client, since};
use crate::prelude::*;

/// Connects an account.
#[mcp_tool]
async fn connect(ctx: &Context) -> Result<&'static str, ToolError> {
    ctx.elicit_url("consent", "Let us in.", "https://example.com/connect").id("visit-1").await?;
    ctx.elicitation_complete("visit-1");
    Ok("connected")
}

/// Connects an account under a random id.
#[mcp_tool]
async fn visit(ctx: &Context) -> Result<String, ClientRequestError> {
    let answer = ctx.elicit_url("consent", "Let us in.", "https://example.com/connect").answer().await?;
    Ok(answer.action().to_owned())
}

#[tokio::test]
async fn users_are_sent_to_urls() {
    let builder = mcp_runtime::server!().tool::<connect>().tool::<visit>();
    let (mut server, questions) = client(builder, |_, _| json!({ "action": "accept" }));
    for revision in since(Revision::V2025_11_25) {
        server = server.legacy(revision);
        let reply = server.call("connect", json!({})).await;
        reply.expect_text("connected");
        let mut expected =
            json!({ "mode": "url", "message": "Let us in.", "url": "https://example.com/connect" });
        let told: Vec<&Value> = reply.notifications().iter().filter(|n| n.get("id").is_none()).collect();
        if revision.is_modern() {
            assert!(told.is_empty(), "{reply}");
        } else {
            expected["elicitationId"] = "visit-1".into();
            let done = json!({
                "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
                "params": { "elicitationId": "visit-1" }
            });
            assert_eq!(told, [&done], "{reply}");
        }
        assert_eq!(questions.take(), [("elicitation/create".to_owned(), expected)], "{revision}");
    }
}

#[tokio::test]
async fn elicitation_ids_are_random_unless_set() {
    let (server, questions) =
        client(mcp_runtime::server!().tool::<visit>(), |_, _| json!({ "action": "accept" }));
    let server = server.legacy(Revision::V2025_11_25);
    for _ in 0..2 {
        server.call("visit", json!({})).await.expect_text("accept");
    }
    let ids: Vec<String> =
        questions.take().iter().map(|(_, params)| params["elicitationId"].to_string()).collect();
    assert!(ids[0].len() >= 32 && ids[0] != ids[1], "{ids:?}");
}

#[tokio::test]
async fn users_may_decline_a_url() {
    let builder = mcp_runtime::server!().tool::<connect>().tool::<visit>();
    let (mut server, _) = client(builder, |_, _| json!({ "action": "decline" }));
    for revision in since(Revision::V2025_11_25) {
        server = server.legacy(revision);
        server.call("visit", json!({})).await.expect_text("decline");
        let text = failure(&server.call("connect", json!({})).await);
        assert_eq!(text, "the user declined to answer `consent`");
    }
}

#[tokio::test]
async fn url_elicitation_is_a_separate_capability() {
    let server = serve(mcp_runtime::server!().tool::<connect>())
        .answering(json!({ "elicitation": {} }), |_, _| panic!("unexpected client request"));
    let reply = server.call("connect", json!({})).await;
    let (code, _) = refusal(&reply);
    assert_eq!(code, -32021);
    let data = reply.error().and_then(|error| error.data);
    assert_eq!(data, Some(json!({ "requiredCapabilities": { "elicitation": { "url": {} } } })));
    let server = server.legacy(Revision::V2025_11_25);
    assert!(failure(&server.call("connect", json!({})).await).contains("`elicitation.url`"));
    let server = server.legacy(Revision::V2025_06_18);
    assert!(failure(&server.call("connect", json!({})).await).contains("has no elicitation by URL"));
}
