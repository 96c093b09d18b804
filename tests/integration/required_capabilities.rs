//! `requires(..)`: a call is refused before the function runs if its client lacks a required capability.

use mcp_runtime::client_request::ClientFeature;

use crate::prelude::*;

#[derive(Default)]
struct Runs(AtomicUsize);

impl Runs {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Needs every capability
#[mcp_tool(requires(elicitation, elicitation_url, sampling_tools))]
fn all_capabilities(runs: &Runs) -> usize {
    runs.next()
}

/// Needs a model
#[mcp_tool(requires(sampling))]
fn model(n: u32) -> u32 {
    n
}

/// Needs roots, one call at a time
#[mcp_tool(requires(roots), max_concurrency = 1)]
async fn roots(ctx: &Context) {
    ctx.cancelled().await;
}

/// Asks without having required it
#[mcp_tool]
async fn asks(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.elicit("name", "What is your name?").await?)
}

#[mcp_resource(uri = "needs://roots", requires(roots))]
fn resource(runs: &Runs) -> String {
    runs.next().to_string()
}

#[mcp_prompt(requires(roots))]
fn prompt(runs: &Runs) -> String {
    runs.next().to_string()
}

fn builder() -> ServerBuilder {
    let dynamic = ToolDef::builder("dynamic").requires([ClientFeature::Roots]).handler(|_| async { "ran" });
    mcp_runtime::server!().discover_in(module_path!()).add(dynamic).state(Runs::default())
}

fn declaring(capabilities: Value) -> TestServer {
    serve(builder()).answering(capabilities, |_, _| Err("unexpected client request".into()))
}

/// The capabilities that the error data names.
fn required(reply: &Reply) -> Value {
    let error = reply.error().expect("an error");
    assert_eq!(error.code, -32021, "{reply}");
    error.data.expect("data")["requiredCapabilities"].clone()
}

#[tokio::test]
async fn the_error_lists_every_missing_capability() {
    let bare = serve(builder());
    let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} } });
    assert_eq!(required(&bare.call("all_capabilities", json!({})).await), all);
    let some = declaring(json!({ "elicitation": {}, "sampling": {} }));
    let rest = json!({ "elicitation": { "url": {} }, "sampling": { "tools": {} } });
    assert_eq!(required(&some.call("all_capabilities", json!({})).await), rest);
    some.call("model", json!({ "n": 3 })).await.expect_json(&json!(3));
    let urls = declaring(json!({ "elicitation": { "url": {} }, "sampling": { "tools": {} } }));
    let forms = json!({ "elicitation": { "form": {} } });
    assert_eq!(required(&urls.call("all_capabilities", json!({})).await), forms);
    assert_eq!(required(&urls.call("asks", json!({})).await), forms);
    let whole = declaring(all);
    whole.call("all_capabilities", json!({})).await.expect_json(&json!(0));

    let roots = json!({ "roots": {} });
    assert_eq!(required(&bare.call("dynamic", json!({})).await), roots);
    assert_eq!(required(&bare.read("needs://roots").await), roots);
    assert_eq!(required(&bare.prompt("prompt", json!({})).await), roots);
    let able = declaring(roots);
    able.call("dynamic", json!({})).await.expect_text("ran");
    able.read("needs://roots").await.expect_text("0");
    able.prompt("prompt", json!({})).await.expect_text("1");
}

#[tokio::test]
async fn legacy_clients_get_a_failed_tool_result() {
    for revision in LEGACY {
        let bare = serve(builder()).legacy(revision);
        let text = failure(&bare.call("all_capabilities", json!({})).await);
        assert!(text.contains("`elicitation`, `elicitation.url`, `sampling.tools`"), "{text}");
        for reply in [bare.read("needs://roots").await, bare.prompt("prompt", json!({})).await] {
            let (code, text) = refusal(&reply);
            assert!(code == -32603 && text.contains("`roots`"), "{reply}");
        }
        let able = declaring(json!({ "roots": {}, "sampling": {} })).legacy(revision);
        able.call("model", json!({ "n": 3 })).await.expect_json(&json!(3));
        able.read("needs://roots").await.expect_text("0");
    }
}

#[tokio::test]
async fn items_are_listed_for_clients_without_the_capability() {
    let bare = serve(builder());
    assert_eq!(bare.list_tools().await.len(), 5);
    assert_eq!((bare.list_resources().await.len(), bare.list_prompts().await.len()), (1, 1));
}

#[tokio::test]
async fn a_refused_call_does_not_wait_for_a_permit() {
    let server = builder().build().expect("a server");
    let able = TestServer::of(&server)
        .answering(json!({ "roots": {} }), |_, _| Err("unexpected client request".into()));
    let mut running = Box::pin(able.call("roots", json!({})));
    let first =
        std::future::poll_fn(|cx| std::task::Poll::Ready(running.as_mut().poll(cx).is_pending())).await;
    assert!(first, "it has the only turn, for as long as it is not given up");
    assert_eq!(required(&TestServer::of(&server).call("roots", json!({})).await), json!({ "roots": {} }));
}
