use mcp_runtime::prelude::*;

#[mcp_type]
struct Filter {
    #[serde(colour)]
    author: String,
}

#[mcp_tool]
fn search(filter: Filter) -> String {
    filter.author
}

fn main() {}
