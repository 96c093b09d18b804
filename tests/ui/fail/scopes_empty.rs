use mcp_runtime::mcp_tool;

#[mcp_tool(scopes())]
fn search(query: String) -> String {
    query
}

fn main() {}
