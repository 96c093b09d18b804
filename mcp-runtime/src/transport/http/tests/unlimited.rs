//! Limits that are set to the maximum of their types.

use tokio::{net::TcpListener, sync::oneshot, time::timeout};

use super::*;
use crate::tool::{RuntimeTool, ToolCall};

#[tokio::test]
async fn a_server_with_maximal_limits_serves_and_stops() {
    let tool = RuntimeTool::builder("echo").max_concurrency(usize::MAX).timeout(Duration::MAX).handler(
        |_: ToolCall| async {
            tokio::task::yield_now().await;
            "done"
        },
    );
    let server = server()
        .drain(Duration::MAX)
        .session_lifetime(Duration::MAX)
        .list_ttl(Duration::MAX)
        .ask_timeout(Duration::MAX)
        .task_ttl(Duration::MAX)
        .task_poll_interval(Duration::MAX)
        .max_connections(usize::MAX)
        .max_requests(usize::MAX)
        .max_sessions(usize::MAX)
        .max_streams(usize::MAX)
        .max_subscribers(usize::MAX)
        .max_tasks(usize::MAX)
        .max_body(usize::MAX)
        .max_line(usize::MAX)
        .page_size(usize::MAX)
        .legacy_sse("/sse")
        .add_tool(tool)
        .build()
        .expect("a server");
    let client = Client::with_session(&HttpHandler::new(&server), "2025-11-25").await;
    let reply = BodyReader::new(client.call(1, "echo").await).json().await;
    assert_eq!(tool_text(&reply), "done");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_http_until(listener, async { drop(stopped.await) }));
    tokio::task::yield_now().await;
    drop(stop);
    timeout(TEST_TIMEOUT, serving).await.expect("in time").expect("no panic").expect("served");
}
