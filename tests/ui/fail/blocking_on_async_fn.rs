use mcp_runtime::mcp_tool;

#[mcp_tool(blocking)]
async fn search(query: String) -> String {
    query
}

fn main() {}
