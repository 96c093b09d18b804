use mcp_runtime::mcp_tool;

#[mcp_tool]
enum Search {
    Fast,
}

fn main() {}
