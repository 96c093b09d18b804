use mcp_runtime::mcp_tool;

#[mcp_tool]
fn größe() -> u32 {
    1
}

fn main() {}
