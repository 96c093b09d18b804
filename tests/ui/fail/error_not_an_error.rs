use mcp_runtime::mcp_error;

#[mcp_error]
#[derive(Debug)]
enum Failed {
    #[mcp(public)]
    Failed,
}

const _: Failed = Failed::Failed;

fn main() {}
