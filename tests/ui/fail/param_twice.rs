use mcp_runtime::prelude::*;

#[mcp_tool]
fn add(#[mcp(name = "a")] _number: u8, #[mcp(name = "b")] _number: u8) {}

fn main() {}
