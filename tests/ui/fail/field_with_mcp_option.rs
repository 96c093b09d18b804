use mcp_runtime::prelude::*;

#[mcp_type]
struct Filter {
    #[mcp(range(1..=5))]
    stars: u32,
}

#[mcp_tool]
fn search(filter: Filter) -> u32 {
    filter.stars
}

fn main() {}
