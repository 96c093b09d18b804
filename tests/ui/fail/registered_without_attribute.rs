//! A type that is not a tool, in a program with one tool, which rustc names.

use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: String) -> String {
    query
}

struct Find {}

fn main() {
    let _ = mcp_runtime::server!().tool::<search>().tool::<Find>().build();
}
