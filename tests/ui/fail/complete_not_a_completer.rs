use mcp_runtime::mcp_prompt;

#[mcp_prompt]
fn review(#[mcp(complete = u32::from_str_radix)] id: u32) -> String {
    id.to_string()
}

fn main() {}
