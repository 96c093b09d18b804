use mcp_runtime::{mcp_error, mcp_tool};

#[mcp_error]
#[derive(Debug)]
enum Failed {
    #[mcp(public)]
    Failed,
}

#[mcp_tool]
fn search() -> Result<String, Failed> {
    Err(Failed::Failed)
}

fn main() {}
