use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: Querry) -> String {
    String::new()
}

fn main() {}
