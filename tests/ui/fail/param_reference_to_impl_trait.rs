use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(query: &impl ToString) -> String {
    query.to_string()
}

fn main() {}
