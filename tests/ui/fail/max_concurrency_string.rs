use mcp_runtime::mcp_tool;

#[mcp_tool(max_concurrency = "2")]
fn search(query: String) -> String {
    query
}

fn main() {}
