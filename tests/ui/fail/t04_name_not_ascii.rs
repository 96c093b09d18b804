use mcp_runtime::mcp_tool;

#[mcp_tool(name = "größe")]
fn search(query: String) -> String {
    query
}

fn main() {}
