//! A default or example that breaks the rules of its own parameter is an error from `build()`.

use mcp_runtime::prelude::*;

#[mcp_tool]
fn outside(#[mcp(default = 30, range(1..=5))] count: u8) -> u8 {
    count
}

#[mcp_tool]
fn none_of(#[mcp(example = "c", one_of("a", "b"))] kind: String) -> String {
    kind
}

#[mcp_tool]
fn inside(#[mcp(default = Some(5), example = Some(1), range(1..=5))] count: Option<u8>) -> Option<String> {
    count.map(|count| count.to_string())
}

fn main() {
    let error = mcp_runtime::server!().discover().build().expect_err("an error").to_string();
    assert!(
        error.contains("tool `outside`: `count`: its default breaks its rules: 30 is greater"),
        "{error}"
    );
    assert!(error.contains("tool `none_of`: `kind`: its example breaks its rules: is not one of"), "{error}");
    assert!(!error.contains("`inside`"), "{error}");
}
