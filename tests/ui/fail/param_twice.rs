use mcp_runtime::prelude::*;

#[mcp_tool]
fn add(_number: u8, _number: u8) {}

fn main() {}
