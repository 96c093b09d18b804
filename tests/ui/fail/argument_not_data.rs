use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(filter: Box<dyn Fn(u32) -> bool>) -> bool {
    filter(1)
}

fn main() {}
