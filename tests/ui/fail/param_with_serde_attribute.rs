use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(#[serde(default)] limit: u32) -> u32 {
    limit
}

fn main() {}
