use mcp_runtime::prelude::*;

#[mcp_error(private)]
#[derive(Debug, thiserror::Error)]
enum E { #[error("a")] A }

#[mcp_tool]
fn search() -> Result<String, E> { Err(E::A) }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
