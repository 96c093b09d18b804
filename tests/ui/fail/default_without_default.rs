use mcp_runtime::{mcp_tool, mcp_type};

#[mcp_type]
struct Query {
    text: String,
}

#[mcp_tool]
fn search(#[mcp(default)] query: Query) -> String {
    query.text
}

fn main() {}
