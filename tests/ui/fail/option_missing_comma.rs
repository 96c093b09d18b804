use mcp_runtime::mcp_tool;

#[mcp_tool(read_only strict)]
fn search(query: String) -> String {
    query
}

fn main() {}
