//! Clients that do not read their event stream: the call continues, and its limits still apply.

use super::{modern, with_progress};
use crate::prelude::*;

/// Bytes of one report. All reports together exceed the socket buffers of both sides.
const REPORT: usize = 16 << 10;
const REPORTS: u16 = 500;

pub(super) async fn send_reports(ctx: &Context) {
    let text = "x".repeat(REPORT);
    for step in 1..=REPORTS {
        ctx.progress(f64::from(step)).message(&text).send();
        tokio::task::yield_now().await;
    }
}

/// Reports a lot of progress, and returns
#[mcp_tool(max_concurrency = 1)]
async fn report(ctx: &Context, gate: &Gate) -> &'static str {
    let inside = gate.enter();
    send_reports(ctx).await;
    inside.finish();
    "reported"
}

/// Reports progress until its time limit
#[mcp_tool(max_concurrency = 1, timeout = "500ms")]
async fn report_on(ctx: &Context, gate: &Gate) -> &'static str {
    let _inside = gate.enter();
    send_reports(ctx).await;
    std::future::pending().await
}

async fn served(gate: &Gate) -> HttpServer {
    let builder = mcp_runtime::server!().tool::<report>().tool::<report_on>();
    HttpServer::start(builder.state(gate.clone())).await
}

/// Calls a tool that reports progress, and reads nothing.
async fn ignore(served: &HttpServer, tool: &str) -> HttpConnection {
    let mut connection = HttpConnection::over(narrow_socket(served.address).await);
    connection.send(&with_progress(tool)).await;
    connection
}

#[tokio::test]
async fn a_call_finishes_although_its_client_reads_nothing() {
    let gate = Gate::default();
    let served = served(&gate).await;
    let _unread = ignore(&served, "report").await;
    until(|| gate.finished() == 1).await;
    // its permit is released
    let reply = within(modern("report").send(served.address)).await;
    assert_eq!(text_of(&reply.json()), "reported");
}

#[tokio::test]
async fn the_time_limit_applies_although_the_client_reads_nothing() {
    let gate = Gate::default();
    let served = served(&gate).await;
    let _unread = ignore(&served, "report_on").await;
    until(|| gate.dropped() == 1).await;
    let reply = within(modern("report_on").send(served.address)).await.json();
    assert_eq!(text_of(&reply), "tool 'report_on' took longer than its limit of 500ms");
    assert_eq!(gate.dropped(), 2, "the second got the place of the first");
}
