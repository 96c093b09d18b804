use mcp_runtime::mcp_type;

#[mcp_type(rename_all = "lowercase")]
struct Query {
    text: String,
}

const _: fn(Query) -> String = |query| query.text;

fn main() {}
