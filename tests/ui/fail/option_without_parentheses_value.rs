use mcp_runtime::mcp_tool;

#[mcp_tool(title "Search")]
fn search(query: String) -> String {
    query
}

fn main() {}
