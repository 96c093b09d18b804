use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[mcp(header = "Region")] first: String, #[mcp(header = "REGION")] second: String) -> String {
    first + &second
}

fn main() {}
