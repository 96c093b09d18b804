use mcp_runtime::mcp_tool;

#[mcp_tool]
async fn search(words: Vec<_>) -> usize {
    words.len()
}

fn main() {}
