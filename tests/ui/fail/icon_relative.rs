use mcp_runtime::mcp_tool;

#[mcp_tool(icon = "icon.png")]
fn search(query: String) -> String {
    query
}

fn main() {}
