use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: str) -> String {
    query.len().to_string()
}

fn main() {}
