use mcp_runtime::mcp_tool;

#[mcp_tool("search")]
fn search(query: String) -> String {
    query
}

fn main() {}
