//! What functions see of the HTTP request: its headers and its trace context.

use super::legacy::session;
use crate::prelude::*;

/// Returns a header
#[mcp_tool]
fn header(name: String, ctx: &Context) -> String {
    ctx.header(&name).unwrap_or("none").to_owned()
}

/// Returns the caller
#[mcp_tool]
fn who(caller: Option<&Principal>) -> String {
    caller.map_or("anonymous", Principal::subject).to_owned()
}

/// Returns the trace context
#[mcp_tool]
async fn trace(ctx: &Context) -> String {
    tokio::task::yield_now().await;
    ctx.traceparent().map_or_else(|| "none".into(), |trace| trace.into_owned())
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<header>().tool::<trace>()
}

const ONE: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

#[tokio::test]
async fn headers_are_available_over_http_only() {
    let server = HttpServer::start(builder()).await;
    within(async {
        let legacy = session(&server, "2025-06-18").await;
        let params = json!({ "name": "header", "arguments": { "name": "x-TEAM" } });
        let asks = [
            HttpRequest::modern(1, "tools/call", params.clone()),
            HttpRequest::legacy(&legacy, 1, "tools/call", &params),
        ];
        for request in asks {
            assert_eq!(text_of(&request.send(server.address).await.json()), "none");
            let request = request.header("X-Team", "a");
            assert_eq!(text_of(&request.clone().send(server.address).await.json()), "a");
            // which of them is whose cannot be told
            let reply = request.header("X-Team", "b").send(server.address).await;
            assert_eq!(text_of(&reply.json()), "none");
        }
    })
    .await;
    serve(builder()).call("header", json!({ "name": "host" })).await.expect_text("none");
}

#[tokio::test]
async fn a_caller_whom_a_header_names_is_neither_nameless_nor_named_twice() {
    let named = builder().tool::<who>().http(|http| {
        http.caller(|parts| Some(Principal::new("proxy", parts.headers.get("x-user")?.to_str().ok()?)))
    });
    let server = HttpServer::start(named).await;
    for (users, expected) in [
        (&["ada"][..], "ada"),
        (&[], "anonymous"),
        (&[""], "anonymous"),
        // of the client, and of the proxy
        (&["eve", "ada"], "anonymous"),
    ] {
        let request = HttpRequest::modern(1, "tools/call", json!({ "name": "who" }));
        let request = users.iter().fold(request, |request, user| request.header("X-User", user));
        assert_eq!(text_of(&request.send(server.address).await.json()), expected, "{users:?}");
    }
}

#[tokio::test]
async fn the_trace_context_of_the_message_overrides_the_header() {
    let server = HttpServer::start(builder()).await;
    within(async {
        let request =
            |meta: Value| HttpRequest::modern(1, "tools/call", json!({ "name": "trace", "_meta": meta }));
        let sent =
            async |request: HttpRequest| text_of(&request.send(server.address).await.json()).to_owned();
        assert_eq!(sent(request(json!({}))).await, "none");
        assert_eq!(sent(request(json!({})).header("traceparent", OTHER)).await, OTHER);
        assert_eq!(sent(request(json!({ "traceparent": ONE })).header("traceparent", OTHER)).await, ONE);
        assert_eq!(
            sent(request(json!({ "traceparent": "nonsense" })).header("traceparent", OTHER)).await,
            OTHER
        );
        assert_eq!(
            sent(request(json!({ "traceparent": 1 })).header("traceparent", "nonsense")).await,
            "none"
        );
    })
    .await;
    let params = json!({ "name": "trace", "_meta": { "traceparent": ONE } });
    serve(builder()).request("tools/call", params).await.expect_text(ONE);
}
