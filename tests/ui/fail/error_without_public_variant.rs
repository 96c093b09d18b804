use mcp_runtime::mcp_error;

#[mcp_error]
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("failed")]
    Failed,
}

const _: Failed = Failed::Failed;

fn main() {}
