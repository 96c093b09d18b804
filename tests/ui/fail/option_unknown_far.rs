use mcp_runtime::mcp_tool;

#[mcp_tool(colour = "red")]
fn search(query: String) -> String {
    query
}

fn main() {}
