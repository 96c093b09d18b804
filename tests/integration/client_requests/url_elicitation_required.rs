//! `UrlElicitationRequired` errors: URLs that the user must visit before a call can succeed, as each client sees them.

use mcp_runtime::client_request::UrlElicitation;

use super::{client, everything};
use crate::prelude::*;

/// How many more visits are needed until the account is connected.
#[derive(Clone, Default)]
struct Missing(Arc<AtomicUsize>);

impl Missing {
    fn token(&self) -> Result<&'static str, ProtocolError> {
        if self.0.load(Ordering::SeqCst) == 0 {
            return Ok("token");
        }
        let visit = UrlElicitation::new("calendar", "Let us in.", "https://example.com/connect");
        Err(ProtocolError::url_elicitation_required([visit]))
    }
}

#[mcp_tool]
fn at_once(missing: &Missing) -> Result<&'static str, ProtocolError> {
    missing.token()
}

#[mcp_tool]
async fn later(missing: &Missing) -> Result<&'static str, ToolError> {
    tokio::task::yield_now().await;
    Ok(missing.token()?)
}

#[mcp_tool]
async fn after_a_question(missing: &Missing, ctx: &Context) -> Result<&'static str, ToolError> {
    ctx.elicit::<()>("sure", "Are you sure?").await?;
    Ok(missing.token()?)
}

#[mcp_tool(task)]
async fn as_task(missing: &Missing) -> Result<&'static str, ToolError> {
    tokio::task::yield_now().await;
    Ok(missing.token()?)
}

#[mcp_resource(uri = "calendar://today")]
fn today(missing: &Missing) -> Result<&'static str, ProtocolError> {
    missing.token()
}

#[mcp_prompt]
fn plan(missing: &Missing) -> Result<&'static str, ProtocolError> {
    missing.token()
}

fn builder(visits: usize) -> (ServerBuilder, Missing) {
    let missing = Missing(Arc::new(AtomicUsize::new(visits)));
    let builder = mcp_runtime::server!().tool::<at_once>().tool::<later>().tool::<after_a_question>();
    (builder.tool::<as_task>().resource::<today>().prompt::<plan>().state(missing.clone()), missing)
}

const TOOLS: [&str; 4] = ["at_once", "later", "after_a_question", "as_task"];

#[tokio::test]
async fn modern_clients_are_sent_to_urls_until_the_function_succeeds() {
    for item in TOOLS.into_iter().chain(["calendar://today", "plan"]) {
        let (builder, missing) = builder(2);
        let (server, questions) = client(builder, move |_, params| {
            if params["mode"] == "url" {
                missing.0.fetch_sub(1, Ordering::SeqCst);
            }
            json!({ "action": "accept", "content": {} })
        });
        let reply = match item {
            "calendar://today" => server.read(item).await,
            "plan" => server.prompt(item, json!({})).await,
            tool => server.call(tool, json!({})).await,
        };
        reply.expect_text("token");
        let asked: Vec<Value> =
            questions.take().into_iter().map(|(_, params)| params).filter(|p| p["mode"] == "url").collect();
        let url = json!({ "mode": "url", "message": "Let us in.", "url": "https://example.com/connect" });
        assert_eq!(asked, [url.clone(), url], "{item}");
    }
}

#[tokio::test]
async fn modern_users_may_decline() {
    let (builder, _) = builder(1);
    let (server, questions) = client(builder, |_, _| json!({ "action": "decline" }));
    for tool in ["at_once", "later"] {
        let text = failure(&server.call(tool, json!({})).await);
        assert_eq!(text, "Let us in.\nthe user declined to answer `calendar`");
    }
    let (code, message) = refusal(&server.read("calendar://today").await);
    assert_eq!((code, &*message), (-32603, "Let us in.\nthe user declined to answer `calendar`"));
    assert_eq!(questions.take().len(), 3);
}

#[tokio::test]
async fn url_elicitation_needs_the_url_capability() {
    let server = serve(builder(1).0)
        .answering(json!({ "elicitation": {} }), |_, _| panic!("unexpected client request"));
    let lacking = |reply: &Reply| {
        let error = reply.error().expect("an error");
        assert_eq!(error.code, -32021);
        assert_eq!(error.data, Some(json!({ "requiredCapabilities": { "elicitation": { "url": {} } } })));
    };
    lacking(&server.call("at_once", json!({})).await);
    lacking(&server.call("later", json!({})).await);
    lacking(&server.read("calendar://today").await);
    lacking(&server.prompt("plan", json!({})).await);
}

#[tokio::test]
async fn a_running_task_fails() {
    let server = serve(builder(1).0).answering(everything(), |_, _| panic!("unexpected client request"));
    let text = failure(&server.call_task("as_task", json!({})).await);
    assert_eq!(text, "Let us in.\nno request can be sent to the client: the call has become a task");
}

#[tokio::test]
async fn clients_of_2025_11_25_with_the_url_capability_get_the_error() {
    let (server, _) = client(builder(1).0, |_, _| json!({ "action": "accept" }));
    let server = server.legacy(Revision::V2025_11_25);
    let mut replies = vec![server.read("calendar://today").await, server.prompt("plan", json!({})).await];
    for tool in TOOLS {
        replies.push(server.call(tool, json!({})).await);
    }
    for reply in replies {
        let error = reply.error().expect("an error");
        assert_eq!((error.code, &*error.message), (-32042, "Let us in."));
        let visit = json!({
            "mode": "url", "elicitationId": "calendar", "message": "Let us in.", "url": "https://example.com/connect",
        });
        assert_eq!(error.data, Some(json!({ "elicitations": [visit] })));
    }
}

#[tokio::test]
async fn every_other_client_gets_a_failed_result() {
    let forms = json!({ "elicitation": { "form": {} } });
    let mut server = serve(builder(1).0).answering(forms, |_, _| Ok(json!({ "action": "accept" })));
    for revision in LEGACY {
        server = server.legacy(revision);
        let why = if revision < Revision::V2025_11_25 {
            "the client's revision of the protocol has no elicitation by URL"
        } else {
            "the client does not support `elicitation.url`, which is needed here"
        };
        let text = format!("Let us in.\n{why}");
        for tool in ["at_once", "later", "as_task"] {
            assert_eq!(failure(&server.call(tool, json!({})).await), text, "{revision}");
        }
        assert_eq!(refusal(&server.read("calendar://today").await), (-32603, text.clone()), "{revision}");
        assert_eq!(refusal(&server.prompt("plan", json!({})).await), (-32603, text), "{revision}");
    }
}

#[tokio::test]
async fn an_error_with_an_invalid_url_is_a_private_failure() {
    #[mcp_tool]
    fn wrong(case: u8) -> Result<(), ProtocolError> {
        let script = UrlElicitation::new("x", "secret", "javascript:alert(1)");
        Err(match case {
            0 => ProtocolError::url_elicitation_required([]),
            1 => ProtocolError::new(-32042, "secret"),
            _ => ProtocolError::url_elicitation_required([script]),
        })
    }
    let (mut server, _) =
        client(mcp_runtime::server!().tool::<wrong>(), |_, _| json!({ "action": "accept" }));
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        server = server.legacy(revision);
        for case in 0..3 {
            let reply = server.call("wrong", json!({ "case": case })).await;
            assert_eq!(failure(&reply), "tool 'wrong' failed", "{case} {revision}");
        }
    }
}
