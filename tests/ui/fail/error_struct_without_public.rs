use mcp_runtime::mcp_error;

#[mcp_error]
#[derive(Debug, thiserror::Error)]
#[error("failed")]
struct Failed;

fn main() {}
