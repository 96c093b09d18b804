use mcp_runtime::mcp_prompt;

#[mcp_prompt(icon = "https://a.example/i.png", icon(src = "https://a.example/j.png", sizes("48 x 48")))]
fn review(code: String) -> String {
    code
}

fn main() {}
