//! Floods of sessions leave memory within its bounds.

use std::sync::Arc;

use http::{Request, StatusCode};

use super::{Endpoint, ResponseBody, server};

/// Well above every bound; a debug build is slow.
const FLOOD: usize = if cfg!(debug_assertions) { 15_000 } else { 100_000 };

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

async fn send(
    endpoint: &Arc<Endpoint>,
    method: &str,
    id: &str,
    body: &'static str,
) -> http::Response<ResponseBody> {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    request = request.header("content-type", "application/json");
    if !id.is_empty() {
        request = request.header("mcp-session-id", id);
    }
    endpoint.answer(request.body(http_body(body)).unwrap()).await
}

fn http_body(body: &'static str) -> axum::body::Body {
    axum::body::Body::from(body)
}

/// Starts that many sessions and does something with each.
async fn flood(endpoint: &Arc<Endpoint>, mut each: impl AsyncFnMut(&Arc<Endpoint>, &str)) {
    for _ in 0..FLOOD {
        let response = send(endpoint, "POST", "", INITIALIZE).await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        each(endpoint, &id).await;
    }
}

fn endpoint() -> Arc<Endpoint> {
    Endpoint::new(&server().max_streams(500).build().unwrap())
}

fn kept(endpoint: &Endpoint) -> usize {
    endpoint.legacy.kept()
}

#[tokio::test]
async fn a_flood_of_sessions_keeps_nothing() {
    let endpoint = endpoint();
    flood(&endpoint, async |_, _| {}).await;
    assert_eq!(kept(&endpoint), 0);
}

#[tokio::test]
async fn a_flood_of_ended_sessions_is_refused_when_the_revoked_are_too_many() {
    let endpoint = endpoint();
    let mut refused = 0;
    flood(&endpoint, async |endpoint, id| match send(endpoint, "DELETE", id, "").await.status() {
        StatusCode::NO_CONTENT => {}
        status => {
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
            refused += 1;
        }
    })
    .await;
    assert_eq!((refused, kept(&endpoint)), (FLOOD - 10_000, 0));
}

#[tokio::test]
async fn a_flood_of_subscriptions_forgets_the_oldest() {
    let endpoint = endpoint();
    flood(&endpoint, async |endpoint, id| {
        assert!(endpoint.legacy.subscribe(id, "test://text"));
    })
    .await;
    assert_eq!(kept(&endpoint), 10_000);
}

#[tokio::test]
async fn a_flood_of_streams_is_refused_while_they_are_open_and_forgotten_when_they_are_not() {
    let endpoint = endpoint();
    let mut open = Vec::new();
    let mut refused = 0;
    flood(&endpoint, async |endpoint, id| {
        let response = send(endpoint, "GET", id, "").await;
        match response.status() {
            StatusCode::OK => open.push(response),
            status => {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                refused += 1;
            }
        }
    })
    .await;
    assert_eq!((open.len(), refused), (500, FLOOD - 500));
    assert!(kept(&endpoint) <= 10_000);
    open.clear();
    // hung up at once: few are waited for
    flood(&endpoint, async |endpoint, id| {
        drop(send(endpoint, "GET", id, "").await);
        tokio::task::yield_now().await;
    })
    .await;
    assert!(kept(&endpoint) <= 10_000);
    assert!(endpoint.budgets.waiting.used() <= 256);
}
