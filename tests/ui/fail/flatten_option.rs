use mcp_runtime::prelude::*;

#[mcp_type]
struct Search {
    query: Option<String>,
}

#[mcp_tool]
fn search(#[mcp(flatten)] search: Option<Search>) -> String {
    search.and_then(|search| search.query).unwrap_or_default()
}

fn main() {}
