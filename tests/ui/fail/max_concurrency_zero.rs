use mcp_runtime::mcp_tool;

#[mcp_tool(max_concurrency = 0)]
fn search(query: String) -> String {
    query
}

fn main() {}
