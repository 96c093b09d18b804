use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: std::borrow::Cow<'_, str>) -> String {
    query.into_owned()
}

fn main() {}
