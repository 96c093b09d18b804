use mcp_runtime::mcp_tool;

#[mcp_tool]
#[mcp_tool]
fn search(query: String) -> String {
    query
}

fn main() {}
