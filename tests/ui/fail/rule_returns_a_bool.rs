use mcp_runtime::prelude::*;

#[mcp_rule]
fn check(first: &u32, last: &u32) -> bool {
    first <= last
}

#[mcp_tool(validate = check)]
fn book(first: u32, last: u32) -> u32 {
    last - first
}

fn main() {}
