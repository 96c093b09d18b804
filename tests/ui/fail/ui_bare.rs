use mcp_runtime::mcp_tool;

#[mcp_tool(ui)]
fn chart() {}

fn main() {}
