use mcp_runtime::mcp_tool;

struct Query {
    text: String,
}

#[mcp_tool]
fn search(query: Query) -> String {
    query.text
}

fn main() {}
