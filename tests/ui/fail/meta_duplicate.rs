use mcp_runtime::mcp_tool;

#[mcp_tool(meta(a = 1, a = 2))]
fn search(query: String) -> String {
    query
}

fn main() {}
