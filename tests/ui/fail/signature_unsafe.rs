use mcp_runtime::mcp_tool;

#[mcp_tool]
unsafe fn search(query: String) -> String {
    query
}

fn main() {}
