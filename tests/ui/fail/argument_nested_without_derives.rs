use mcp_runtime::mcp_tool;

struct Query {
    text: String,
}

#[mcp_tool]
fn search(queries: Vec<Query>) -> String {
    queries.into_iter().map(|query| query.text).collect()
}

fn main() {}
