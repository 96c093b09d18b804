use mcp_runtime::mcp_tool;

#[mcp_tool(title = "a", title = "b")]
fn search(query: String) -> String {
    query
}

fn main() {}
