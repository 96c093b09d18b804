use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: String) -> String
where
    String: Clone,
{
    query
}

fn main() {}
