use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search(count: u32, _: ...) -> u32 {
    count
}

fn main() {}
