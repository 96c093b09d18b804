use mcp_runtime::prelude::*;

#[mcp_tool]
fn search() -> Result<String, Box<dyn std::error::Error>> {
    Err("none".into())
}

fn main() {}
