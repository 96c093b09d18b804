use mcp_runtime::mcp_tool;

#[mcp_tool(name = "search catalogue")]
fn search(query: String) -> String {
    query
}

fn main() {}
