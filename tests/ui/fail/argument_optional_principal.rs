use mcp_runtime::prelude::*;
use mcp_runtime::Principal;

#[mcp_tool]
fn search(who: Option<Principal>) -> String { format!("{}", who.is_some()) }

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().discover().run()
}
