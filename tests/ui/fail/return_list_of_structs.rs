use mcp_runtime::prelude::*;

#[mcp_type]
struct Hit {
    id: u32,
}

#[mcp_tool]
fn search() -> Vec<Hit> {
    vec![Hit { id: 1 }]
}

fn main() {}
