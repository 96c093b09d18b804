use mcp_runtime::mcp_prompt;

#[mcp_prompt]
fn review(#[mcp(complete = 5)] id: u32) -> String {
    id.to_string()
}

fn main() {}
