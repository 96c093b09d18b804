use mcp_runtime::prelude::*;

struct Author {
    name: String,
}

#[mcp_type]
struct Filter {
    authors: Option<Vec<Author>>,
    parts: Vec<Filter>,
}

#[mcp_tool]
fn search(filter: Filter) -> usize {
    filter.parts.len() + filter.authors.iter().flatten().map(|author| author.name.len()).sum::<usize>()
}

fn main() {}
