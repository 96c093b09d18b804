use mcp_runtime::prelude::*;

#[mcp_type]
enum Order {
    Newest,
    Oldest,
}

#[mcp_tool]
fn search(#[mcp(default = "Newest")] order: Order) -> bool {
    matches!(order, Order::Newest | Order::Oldest)
}

fn main() {}
