use mcp_runtime::prelude::*;

#[mcp_tool(title = "")]
fn untitled() {}

fn main() {}
