use mcp_runtime::mcp_tool;

#[mcp_tool(requires())]
fn ask() {}

fn main() {}
