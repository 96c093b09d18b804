use mcp_runtime::prelude::*;

#[mcp_tool(scopes("read write"))]
fn secret() {}

fn main() {}
