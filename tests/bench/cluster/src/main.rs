//! The server that `tests/bench/cluster.py` drives: with `MCP_SHARED` it is one of several replicas.

use std::time::Duration;

use mcp_runtime::{ServerHandle, prelude::*};

/// Echo the message back
#[mcp_tool]
async fn echo(message: String) -> String {
    message
}

/// Pay, once
#[mcp_tool]
async fn pay(ctx: &Context) -> Result<&'static str, ToolError> {
    let _agreed: bool = ctx.elicit("agreed", "Pay?").await?;
    ctx.consume_once().await?;
    Ok("paid")
}

/// Work for a moment, as a task
#[mcp_tool(task, timeout = "1m")]
async fn job() -> &'static str {
    tokio::time::sleep(Duration::from_millis(1)).await;
    "done"
}

/// Work for a moment, as a task that another replica may run again
#[mcp_tool(task(restart), idempotent, timeout = "1m")]
async fn job_again() -> &'static str {
    tokio::time::sleep(Duration::from_millis(1)).await;
    "done"
}

/// Echo the message back, under a rate that is never reached
#[mcp_tool(rate = "1000000/1s")]
async fn limited(message: String) -> String {
    message
}

#[mcp_type]
struct Message {
    text: String,
}

/// A message was sent.
#[mcp_event(name = "message.sent")]
fn message_sent(#[mcp(payload)] _message: &Message) -> bool {
    true
}

/// Emit an event
#[mcp_tool]
async fn emit(ctx: &Context) -> mcp_runtime::Result<&'static str> {
    ctx.emit::<message_sent>(&Message { text: "hello".into() }).await?;
    Ok("emitted")
}

#[mcp_resource(uri = "bench://state")]
fn state() -> &'static str {
    "state"
}

/// Report a change of the state
#[mcp_tool]
fn touch(server: &ServerHandle) -> &'static str {
    server.resource_updated("bench://state");
    "touched"
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!()
        .discover()
        // all clients have one address, of which one may use half of each limit
        .http(|http| http.max_requests(2048).max_connections(8192).max_streams(6144))
        .limits(|limits| limits.max_consumed_calls(20_000))
        .tasks(|tasks| tasks.max_running(8192).max_kept(20_000))
        .run()
}
