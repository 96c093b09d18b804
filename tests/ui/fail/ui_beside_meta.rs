use mcp_runtime::mcp_tool;

#[mcp_tool(ui(resource = "ui://charts/page.html"), meta(ui(visibility = ["app"])))]
fn chart() {}

fn main() {}
