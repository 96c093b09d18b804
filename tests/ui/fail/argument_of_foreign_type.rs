use mcp_runtime::prelude::*;

#[mcp_tool]
fn wait(until: std::time::Instant) -> bool {
    until > std::time::Instant::now()
}

fn main() {}
