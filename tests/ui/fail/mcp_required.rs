use mcp_runtime::prelude::*;

#[mcp_tool]
fn search(#[mcp(required)] q: Option<String>) -> String { q.unwrap_or_default() }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
