use mcp_runtime::mcp_type;

#[mcp_type]
#[derive(Debug, serde::Serialize)]
struct Query {
    text: String,
}

const _: fn(Query) -> String = |query| query.text;

fn main() {}
