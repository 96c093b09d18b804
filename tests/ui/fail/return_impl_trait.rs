use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: String) -> impl std::fmt::Display {
    query
}

fn main() {}
