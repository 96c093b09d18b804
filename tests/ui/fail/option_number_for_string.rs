use mcp_runtime::mcp_tool;

#[mcp_tool(title = 5)]
fn search(query: String) -> String {
    query
}

fn main() {}
