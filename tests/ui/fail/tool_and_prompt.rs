use mcp_runtime::{mcp_prompt, mcp_tool};

#[mcp_tool]
#[mcp_prompt]
fn search(query: String) -> String {
    query
}

fn main() {}
