//! The `axum` example, over HTTP.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/axum.rs"]
mod example;

/// Calls a tool with a token.
async fn call(address: SocketAddr, token: &str, tool: &str) -> HttpResponse {
    let call = HttpRequest::modern(1, "tools/call", json!({ "name": tool, "arguments": {} }));
    call.header("Authorization", &format!("Bearer {token}")).send(address).await
}

fn text(response: &HttpResponse) -> String {
    assert_eq!(response.status, 200, "{}", response.text());
    text_of(&response.json()).to_owned()
}

async fn start() -> SocketAddr {
    serve_router(example::app(example::service().unwrap())).await
}

#[tokio::test]
async fn the_principal_comes_from_the_middleware() {
    let address = start().await;
    assert_eq!(text(&call(address, "ada-secret", "whoami").await), "ada");
    assert_eq!(text(&call(address, "bob-secret", "whoami").await), "bob");
    assert_eq!(text(&call(address, "ada-secret", "clear_cache").await), "done");
    assert_eq!(text(&call(address, "bob-secret", "clear_cache").await), "only administrators may do this");
}

#[tokio::test]
async fn the_middleware_protects_only_the_endpoint() {
    let address = start().await;
    assert_eq!(call(address, "wrong", "whoami").await.status, 401);
    let health = HttpRequest::new("GET").path("/health").send(address).await;
    assert_eq!((health.status, health.text()), (200, "ok"));
}

#[tokio::test]
async fn both_paths_reach_the_same_endpoint() {
    let address = start().await;
    let sign = |request: HttpRequest, token| request.header("Authorization", &format!("Bearer {token}"));
    for (token, status) in [("ada-secret", 200), ("bob-secret", 404)] {
        let ada = sign(HttpRequest::initialize("2025-11-25"), "ada-secret").send(address).await;
        let call = HttpRequest::legacy(&ada.session(), 1, "tools/call", &json!({ "name": "whoami" }));
        assert_eq!(sign(call.path("/tools/mcp"), token).send(address).await.status, status, "{token}");
    }
}
