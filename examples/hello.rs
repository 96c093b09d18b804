//! The smallest server: `cargo run --example hello -- list`, or `-- call greet '{"name":"Ada"}'`;
//! without arguments it serves an MCP client over stdio.

use mcp_runtime::prelude::*;

/// Greets someone.
#[mcp_tool]
fn greet(
    /// Whom to greet
    name: String,
) -> String {
    format!("Hello, {name}!")
}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
