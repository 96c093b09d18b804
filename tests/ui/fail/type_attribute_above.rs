use mcp_runtime::mcp_type;

#[serde(rename_all = "lowercase")]
#[mcp_type]
struct Query {
    text: String,
}

const _: fn(Query) -> String = |query| query.text;

fn main() {}
