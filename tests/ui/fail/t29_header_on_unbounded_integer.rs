use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(header = "Count")] value: u64) -> String {
    let _ = value;
    String::new()
}

fn main() {}
