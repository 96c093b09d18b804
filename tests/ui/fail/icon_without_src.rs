use mcp_runtime::mcp_tool;

#[mcp_tool(icon(sizes("48x48"), theme = "dark"))]
fn search(query: String) -> String {
    query
}

fn main() {}
