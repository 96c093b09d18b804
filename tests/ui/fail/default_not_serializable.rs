use mcp_runtime::mcp_tool;

#[derive(serde::Deserialize, schemars::JsonSchema, Default)]
struct Query {
    text: String,
}

#[mcp_tool]
fn search(#[mcp(default)] query: Query) -> String {
    query.text
}

fn main() {}
