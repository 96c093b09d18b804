use mcp_runtime::mcp_tool;

#[mcp_tool(requires(elicitation, samplng))]
fn ask() {}

fn main() {}
