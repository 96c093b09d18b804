use mcp_runtime::mcp_prompt;

#[mcp_prompt]
fn review(#[mcp(raw)] id: u32) -> String {
    id.to_string()
}

fn main() {}
