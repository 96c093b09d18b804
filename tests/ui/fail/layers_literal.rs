use mcp_runtime::mcp_prompt;

#[mcp_prompt(layers("timing"))]
fn hello() -> &'static str {
    "hello"
}

fn main() {}
