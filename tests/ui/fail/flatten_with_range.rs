use mcp_runtime::{mcp_tool, mcp_type};

#[mcp_type]
struct Query {
    text: String,
}

#[mcp_tool]
fn search(#[mcp(flatten, length(1..))] query: Query) -> String {
    query.text
}

fn main() {}
