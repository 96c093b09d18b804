//! Limits that are set to the maximum of their types.

use tokio::{net::TcpListener, sync::oneshot, time::timeout};

use super::*;
use crate::core::tool::{ToolCall, ToolDef};

#[tokio::test]
async fn a_server_with_maximal_limits_serves_and_stops() {
    let tool = ToolDef::builder("echo").max_concurrency(usize::MAX).timeout(Duration::MAX).handler(
        |_: ToolCall| async {
            tokio::task::yield_now().await;
            "done"
        },
    );
    let server = server()
        .limits(|limits| limits.shutdown_timeout(Duration::MAX))
        .http(|http| http.session_lifetime(Duration::MAX))
        .lists(|lists| lists.ttl(Duration::MAX))
        .limits(|limits| limits.client_request_timeout(Duration::MAX))
        .tasks(|tasks| tasks.ttl(Duration::MAX))
        .http(|http| {
            http.max_connections(usize::MAX)
                .max_requests(usize::MAX)
                .max_sessions(usize::MAX)
                .max_streams(usize::MAX)
        })
        .limits(|limits| limits.max_subscribers(usize::MAX))
        .tasks(|tasks| tasks.max_running(usize::MAX))
        .http(|http| http.max_body(usize::MAX))
        .lists(|lists| lists.page_size(usize::MAX))
        .add(tool);
    #[cfg(feature = "http-sse")]
    let server = server.http(|http| http.legacy_sse("/sse"));
    let server = server.build().expect("a server");
    let client = Client::with_session(&HttpHandler::new(&server, None), "2025-11-25").await;
    let reply = BodyReader::new(client.call(1, "echo").await).json().await;
    assert_eq!(tool_text(&reply), "done");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_http_until(listener, async { drop(stopped.await) }));
    tokio::task::yield_now().await;
    drop(stop);
    timeout(TEST_TIMEOUT, serving).await.expect("in time").expect("no panic").expect("served");
}
