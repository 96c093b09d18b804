use mcp_runtime::mcp_prompt;

#[mcp_prompt]
fn review() -> std::time::Duration {
    std::time::Duration::ZERO
}

fn main() {}
