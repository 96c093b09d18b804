use mcp_runtime::prelude::*;

#[mcp_type]
struct Order {
    id: u32,
}

#[mcp_event]
fn ordered(#[mcp(payload)] _order: &Order) {}

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().event::<ordered>().run()
}
