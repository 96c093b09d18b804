use mcp_runtime::mcp_tool;

#[mcp_tool(rate = "60 per minute")]
async fn search(query: String) -> String {
    query
}

fn main() {}
