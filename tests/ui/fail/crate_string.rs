use mcp_runtime::mcp_tool;

#[mcp_tool(crate = "mcp_runtime")]
fn search(query: String) -> String {
    query
}

fn main() {}
