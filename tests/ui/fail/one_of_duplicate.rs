use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(one_of("a", "a"))] value: String) -> String {
    let _ = value;
    String::new()
}

fn main() {}
