use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(_query: String) -> u32 {
    1
}

fn main() {}
