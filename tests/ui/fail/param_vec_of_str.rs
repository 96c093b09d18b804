use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: Vec<&str>) -> String {
    query.concat()
}

fn main() {}
