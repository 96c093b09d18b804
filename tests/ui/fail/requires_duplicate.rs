use mcp_runtime::mcp_tool;

#[mcp_tool(requires(roots, sampling, roots))]
fn ask() {}

fn main() {}
