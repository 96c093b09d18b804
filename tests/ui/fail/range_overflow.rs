//! A bound that does not fit the type: a lint, and rustc runs none in a program with other errors.

use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(range(0..=300))] value: u8) -> String {
    let _ = value;
    String::new()
}

fn main() {}
