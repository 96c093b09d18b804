use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: Option<&str>) -> String {
    query.unwrap_or_default().to_owned()
}

fn main() {}
