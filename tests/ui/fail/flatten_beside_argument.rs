use mcp_runtime::{mcp_tool, mcp_type};

#[mcp_type]
struct Query {
    text: String,
}

#[mcp_tool]
fn search(#[mcp(flatten)] query: Query, limit: u32) -> String {
    query.text.repeat(limit as usize)
}

fn main() {}
