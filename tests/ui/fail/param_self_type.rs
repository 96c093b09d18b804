use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(q: Self) -> u32 { 1 }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
