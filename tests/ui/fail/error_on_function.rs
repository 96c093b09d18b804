use mcp_runtime::mcp_error;

#[mcp_error]
fn search() {}

fn main() {}
