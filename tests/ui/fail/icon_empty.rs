use mcp_runtime::mcp_tool;

#[mcp_tool(icon())]
fn search(query: String) -> String {
    query
}

fn main() {}
