//! The memory of sessions stays within its bounds however many are started.

use std::sync::Arc;

use http::{Request, StatusCode};

use super::{HttpHandler, IncomingBody, ResponseBody, Route, server};

/// The bounds on sessions and on records; lower ones in debug builds, which are slow.
const RECORDS: usize = if cfg!(debug_assertions) { 300 } else { 10_000 };
/// The bound on streams.
const STREAMS: usize = 150;
/// The number of sessions, well above every bound.
const SESSIONS: usize = if cfg!(debug_assertions) { 600 } else { 100_000 };

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

async fn send(
    handler: &Arc<HttpHandler>,
    method: &str,
    id: &str,
    body: &'static str,
) -> http::Response<ResponseBody> {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    request = request.header("content-type", "application/json");
    if !id.is_empty() {
        request = request.header("mcp-session-id", id);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    handler.clone().handle(parts, IncomingBody::new(http_body(body)), Route::Mcp, None).await
}

fn http_body(body: &'static str) -> axum::body::Body {
    axum::body::Body::from(body)
}

/// Starts [`SESSIONS`] sessions and calls `use_session` with each id.
async fn start_sessions(
    handler: &Arc<HttpHandler>,
    mut use_session: impl AsyncFnMut(&Arc<HttpHandler>, &str),
) {
    for _ in 0..SESSIONS {
        let response = send(handler, "POST", "", INITIALIZE).await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        use_session(handler, &id).await;
    }
}

fn handler() -> Arc<HttpHandler> {
    HttpHandler::new(
        &server()
            .http(|mut http| {
                http.max_session_records = RECORDS;
                http.max_streams(STREAMS).max_sessions(RECORDS)
            })
            .build()
            .unwrap(),
        None,
    )
}

fn stored_sessions(handler: &HttpHandler) -> usize {
    handler.legacy.stored_sessions()
}

#[tokio::test]
async fn sessions_that_are_only_started_store_a_bounded_number_of_records() {
    let handler = handler();
    start_sessions(&handler, async |_, _| {}).await;
    assert_eq!((stored_sessions(&handler), handler.legacy.recorded_sessions()), (0, RECORDS));
}

#[tokio::test]
async fn ending_sessions_is_refused_when_too_many_have_ended() {
    let handler = handler();
    let mut refused = 0;
    start_sessions(&handler, async |handler, id| match send(handler, "DELETE", id, "").await.status() {
        StatusCode::NO_CONTENT => {}
        status => {
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
            refused += 1;
        }
    })
    .await;
    assert_eq!((refused, stored_sessions(&handler)), (SESSIONS - RECORDS, 0));
}

#[tokio::test]
async fn the_oldest_subscriptions_are_evicted() {
    let handler = handler();
    start_sessions(&handler, async |handler, id| {
        assert!(handler.legacy.subscribe(id, "test://text"));
    })
    .await;
    assert_eq!(stored_sessions(&handler), RECORDS);
}

#[tokio::test]
async fn streams_are_refused_while_too_many_are_open_and_evicted_when_they_are_closed() {
    let handler = handler();
    let mut open = Vec::new();
    let mut refused = 0;
    start_sessions(&handler, async |handler, id| {
        let response = send(handler, "GET", id, "").await;
        match response.status() {
            StatusCode::OK => open.push(response),
            status => {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                refused += 1;
            }
        }
    })
    .await;
    assert_eq!((open.len(), refused), (STREAMS, SESSIONS - STREAMS));
    assert!(stored_sessions(&handler) <= RECORDS);
    open.clear();
    // closed immediately: few wait for their clients to reconnect
    start_sessions(&handler, async |handler, id| {
        drop(send(handler, "GET", id, "").await);
        tokio::task::yield_now().await;
    })
    .await;
    assert!(stored_sessions(&handler) <= RECORDS);
    assert!(handler.endpoint.budgets.waiting.used() <= 256);
}
