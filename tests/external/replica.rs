//! The `replica` server: one of several that share a store (`MCP_SHARED`), for tests that kill some of them. What must
//! happen once is a line in the file `LEDGER`.

use std::{
    fs::OpenOptions,
    io::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use mcp_runtime::{ServerHandle, prelude::*};
use tokio::time::sleep;

/// Tasks that this process has run.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Appends a line to the ledger, which all replicas write.
fn record(line: &str) -> Result<(), ToolError> {
    let path = std::env::var_os("LEDGER").ok_or_else(|| ToolError::new("`LEDGER` is not set"))?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    // one write, so that lines are not mixed
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .map_err(|error| ToolError::new(format!("the ledger cannot be written: {error}")))
}

/// Echoes
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// Sleeps, and then echoes
#[mcp_tool]
async fn nap(ms: u64, message: String) -> String {
    sleep(Duration::from_millis(ms)).await;
    message
}

/// Pays an invoice, once, after the user has agreed
#[mcp_tool]
async fn pay(invoice: String, ctx: &Context) -> Result<String, ToolError> {
    let agreed: bool = ctx.elicit("agreed", format!("Pay {invoice}?")).await?;
    if !agreed {
        return Ok("not paid".into());
    }
    ctx.consume_once().await?;
    record(&invoice)?;
    Ok(format!("paid {invoice}"))
}

/// Works for a while, as a task for clients with the extension
#[mcp_tool(task, timeout = "5m")]
async fn job(ms: u64, name: String) -> String {
    sleep(Duration::from_millis(ms)).await;
    format!("{name} is done")
}

/// Works for a while, as a task that another replica begins again if its own is gone
#[mcp_tool(task(restart), idempotent, timeout = "5m")]
async fn restartable_job(ms: u64, name: String) -> Result<String, ToolError> {
    // the ledger has each line once
    let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    record(&format!("run of {name} as {id}"))?;
    sleep(Duration::from_millis(ms)).await;
    Ok(format!("{name} is done"))
}

/// What `touch` changes
#[mcp_resource(uri = "test://state")]
fn state() -> &'static str {
    "state"
}

/// Reports a change of the state
#[mcp_tool]
fn touch(server: &ServerHandle) -> &'static str {
    server.resource_updated("test://state");
    "touched"
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!()
        .info(|info| info.name("replica"))
        .discover()
        .limits(|limits| limits.max_consumed_calls(2_000_000))
        // a task of a replica that is killed begins again, or has failed, within two leases
        .tasks(|tasks| tasks.lease(Duration::from_secs(5)))
        // an answer whose request got no response is lost: SDKs do not send it again
        .limits(|limits| limits.client_request_timeout(Duration::from_secs(15)))
        .http(|http| http.legacy_sse("/sse").shutdown_delay(Duration::from_millis(200)))
        .run()
}
