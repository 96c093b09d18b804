use mcp_runtime::mcp_tool;

#[mcp_tool(meta(model))]
fn search(query: String) -> String {
    query
}

fn main() {}
