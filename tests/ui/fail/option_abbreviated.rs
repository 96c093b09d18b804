use mcp_runtime::prelude::*;

#[mcp_tool(desc = "Adds.")]
fn add() {}

fn main() {}
