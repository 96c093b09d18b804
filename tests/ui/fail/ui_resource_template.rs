use mcp_runtime::mcp_tool;

#[mcp_tool(ui(resource = "ui://charts/{kind}"))]
fn chart() {}

fn main() {}
