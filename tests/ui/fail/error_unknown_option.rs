use mcp_runtime::mcp_error;

#[mcp_error(private)]
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[mcp(public)]
    #[error("failed")]
    Failed,
}

const _: Failed = Failed::Failed;

fn main() {}
