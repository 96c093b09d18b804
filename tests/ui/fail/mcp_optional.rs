use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(#[mcp(optional)] q: String) -> String { q }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
