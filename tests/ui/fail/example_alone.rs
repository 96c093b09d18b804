use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(example)] value: u32) -> String {
    let _ = value;
    String::new()
}

fn main() {}
