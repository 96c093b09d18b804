use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(length(1..=5))] value: u32) -> String {
    let _ = value;
    String::new()
}

fn main() {}
