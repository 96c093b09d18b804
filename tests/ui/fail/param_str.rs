use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: &str) -> String {
    query.to_owned()
}

fn main() {}
