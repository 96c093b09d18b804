use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(range(1..=5))] value: String) -> String {
    let _ = value;
    String::new()
}

fn main() {}
