use mcp_runtime::mcp_error;

#[mcp_error]
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Failed {
    #[mcp(public)]
    text: String,
}

fn main() {}
