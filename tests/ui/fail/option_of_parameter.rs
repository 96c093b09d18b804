use mcp_runtime::mcp_tool;

#[mcp_tool(range(1..=2))]
fn search(query: String) -> String {
    query
}

fn main() {}
