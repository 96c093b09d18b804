use mcp_runtime::mcp_tool;

#[mcp_tool(tags(1))]
fn search(query: String) -> String {
    query
}

fn main() {}
