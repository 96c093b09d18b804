use mcp_runtime::mcp_prompt;

#[mcp_prompt(ui(resource = "ui://charts/page.html"))]
fn chart() -> String {
    String::new()
}

fn main() {}
