use mcp_runtime::mcp_error;

#[mcp_error]
#[mcp(public)]
#[derive(Debug, thiserror::Error)]
#[error("failed")]
struct Failed;

fn main() {}
