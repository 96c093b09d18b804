use mcp_runtime::mcp_tool;

#[mcp_tool(uri = "a://b")]
fn search(query: String) -> String {
    query
}

fn main() {}
