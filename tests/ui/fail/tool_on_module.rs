use mcp_runtime::mcp_tool;

#[mcp_tool]
mod search {}

fn main() {}
