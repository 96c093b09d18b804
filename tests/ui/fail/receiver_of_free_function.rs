//! A receiver in the outermost column, where there can be no `impl` around it.

use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(&self, q: String) -> String { q }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
