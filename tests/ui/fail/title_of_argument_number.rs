use mcp_runtime::mcp_prompt;

#[mcp_prompt]
fn review(#[mcp(title = 5)] code: String) -> String {
    code
}

fn main() {}
