use mcp_runtime::prelude::*;

#[mcp_tool(tags("a"), meta(tags = ["b"]))]
fn tagged() {}

fn main() {}
