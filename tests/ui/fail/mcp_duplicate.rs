use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(default = 1)] #[mcp(default = 2)] value: u32) -> String {
    let _ = value;
    String::new()
}

fn main() {}
