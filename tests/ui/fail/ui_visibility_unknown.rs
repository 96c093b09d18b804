use mcp_runtime::mcp_tool;

#[mcp_tool(ui(resource = "ui://charts/page.html", visibility(model, user)))]
fn chart() {}

fn main() {}
