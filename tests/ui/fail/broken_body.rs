//! A body that does not parse: rustc looks no further, so this program has no other mistakes.

use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(default)] query: String) -> String {
    if 1
}

const _: fn(String) -> String = search;

fn main() {}
