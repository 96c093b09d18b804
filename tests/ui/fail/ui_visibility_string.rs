use mcp_runtime::mcp_tool;

#[mcp_tool(ui(visibility = "app"))]
fn chart() {}

fn main() {}
