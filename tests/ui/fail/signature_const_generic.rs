use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search<const N: usize>(query: String) -> String {
    query.repeat(N)
}

fn main() {}
