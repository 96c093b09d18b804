use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search((first, second): (u32, u32)) -> u32 {
    first + second
}

fn main() {}
