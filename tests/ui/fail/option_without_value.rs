use mcp_runtime::mcp_tool;

#[mcp_tool(title)]
fn search(query: String) -> String {
    query
}

fn main() {}
