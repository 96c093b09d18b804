use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(#[mcp(example = "ten")] limit: u32) -> u32 {
    limit
}

fn main() {}
