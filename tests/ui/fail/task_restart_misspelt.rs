use mcp_runtime::prelude::*;

/// Counts
#[mcp_tool(idempotent, task(restarts))]
async fn count() {}

fn main() {}
