use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(_: String) -> String {
    String::new()
}

fn main() {}
