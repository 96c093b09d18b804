use mcp_runtime::mcp_tool;

#[mcp_tool(icon(src = "file:///i.png", sizes("any")))]
fn search(query: String) -> String {
    query
}

fn main() {}
