use mcp_runtime::mcp_tool;

#[mcp_tool(meta(model = 1 + 1))]
fn search(query: String) -> String {
    query
}

fn main() {}
