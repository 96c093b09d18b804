use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(complete("a", "b"))] value: String) -> String {
    let _ = value;
    String::new()
}

fn main() {}
