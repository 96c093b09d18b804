use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(#[description("words to look for")] query: String) -> String {
    query
}

fn main() {}
