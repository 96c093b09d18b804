use mcp_runtime::prelude::*;

fn check(first: &u32, last: &u32) -> Result<(), String> {
    if first <= last { Ok(()) } else { Err("the last is before the first".into()) }
}

#[mcp_tool(validate = check)]
fn book(first: u32, last: u32) -> u32 {
    last - first
}

fn main() {
    let _result = check(&1, &2);
}
