//! A server as a function of AWS Lambda, behind a function URL or an HTTP API of API Gateway.
//!
//! Each invocation is one HTTP request, and may reach another process: the server is stateless, and its keys come from the
//! environment.

use axum::Router;
use mcp_runtime::prelude::*;

/// Adds two numbers.
#[mcp_tool(read_only)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[mcp_type]
struct Agreement {
    agrees: bool,
}

/// Books a table, once the user agrees.
#[mcp_tool]
async fn book(people: u32, ctx: &Context) -> Result<String, ToolError> {
    // sealed in the state that comes back with the answer, which may reach another process
    let asked: u32 = ctx.once("asked", || async { Ok(std::process::id()) }).await?;
    let Agreement { agrees } = ctx.elicit("agreement", format!("A table for {people}?")).await?;
    let what = if agrees { "booked" } else { "not booked" };
    Ok(format!("{what} for {people}: asked by process {asked}, answered by process {}", std::process::id()))
}

/// The server that answers at `host`, the domain of the function URL or of the API.
///
/// # Errors
/// The keys in `MCP_SERVER_KEYS` are not valid.
pub fn router(host: &str) -> mcp_runtime::Result<Router> {
    mcp_runtime::server!()
        .discover()
        .stores(|stores| stores.keys_from_env())
        // the events name the host that the client has used
        .http(|http| http.stateless().allowed_hosts([host]))
        .build()?
        .into_router()
}
