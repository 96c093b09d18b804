use mcp_runtime::mcp_type;

#[mcp_type]
fn search() {}

fn main() {}
