use mcp_runtime::mcp_tool;

#[mcp_tool(timeout = 5)]
async fn search(query: String) -> String {
    query
}

fn main() {}
