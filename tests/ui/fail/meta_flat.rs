use mcp_runtime::mcp_tool;

#[mcp_tool(meta = "m")]
fn search(query: String) -> String {
    query
}

fn main() {}
