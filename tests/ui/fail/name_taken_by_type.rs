use mcp_runtime::mcp_tool;

mod search {}

#[mcp_tool]
fn search(query: String) -> String {
    query
}

fn main() {}
