use mcp_runtime::mcp_tool;

#[mcp_tool(ui(uri = "ui://charts/page.html"))]
fn chart() {}

fn main() {}
