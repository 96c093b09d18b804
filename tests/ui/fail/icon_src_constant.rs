use mcp_runtime::mcp_tool;

#[mcp_tool(icon(src = ICON))]
fn search(query: String) -> String {
    query
}

fn main() {}
