use mcp_runtime::mcp_tool;

const LIMIT: &str = "5s";

#[mcp_tool(timeout = LIMIT)]
async fn search(query: String) -> String {
    query
}

fn main() {}
