use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search<T: ToString>(query: T) -> String {
    query.to_string()
}

fn main() {}
