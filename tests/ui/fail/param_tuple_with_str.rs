use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: (u32, &str)) -> String {
    query.1.to_owned()
}

fn main() {}
