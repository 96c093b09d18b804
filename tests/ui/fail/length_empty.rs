use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(length(5..=1))] value: String) -> String {
    let _ = value;
    String::new()
}

fn main() {}
