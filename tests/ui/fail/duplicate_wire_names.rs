use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(first: String, #[mcp(name = "first")] second: String) -> String {
    first + &second
}

fn main() {}
