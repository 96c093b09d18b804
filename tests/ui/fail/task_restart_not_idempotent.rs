use mcp_runtime::prelude::*;

/// Sends a letter
#[mcp_tool(task(restart))]
async fn send() {}

fn main() {}
