use mcp_runtime::{mcp_tool, mcp_type};

#[mcp_type(rename = "query")]
struct Query {
    text: String,
}

#[mcp_tool]
fn search(query: Query) -> String {
    query.text
}

fn main() {}
