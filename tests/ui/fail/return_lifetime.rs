use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: String) -> std::borrow::Cow<'_, str> {
    query.into()
}

fn main() {}
