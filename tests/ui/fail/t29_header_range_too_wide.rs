use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(header = "Count", range(0..=9007199254740992))] value: u64) -> String {
    let _ = value;
    String::new()
}

fn main() {}
