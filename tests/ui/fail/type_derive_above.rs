use mcp_runtime::mcp_type;

#[derive(serde::Serialize)]
#[mcp_type]
struct Query {
    text: String,
}

const _: fn(Query) -> String = |query| query.text;

fn main() {}
