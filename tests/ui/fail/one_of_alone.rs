use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(one_of)] value: String) -> String {
    let _ = value;
    String::new()
}

fn main() {}
