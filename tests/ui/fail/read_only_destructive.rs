use mcp_runtime::prelude::*;

#[mcp_tool(read_only, destructive)]
fn wipe() {}

fn main() {}
