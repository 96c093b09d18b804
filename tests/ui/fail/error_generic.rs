use mcp_runtime::mcp_error;

#[mcp_error]
#[derive(Debug, thiserror::Error)]
enum Failed<T> {
    #[mcp(public)]
    #[error("not a {0}")]
    Not(T),
}

const _: Option<Failed<String>> = None;

fn main() {}
