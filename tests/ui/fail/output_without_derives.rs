use mcp_runtime::{ToolResult, mcp_tool};

struct Hit {
    id: u32,
}

#[mcp_tool(output = Hit)]
fn search() -> ToolResult {
    ToolResult::default()
}

const _: fn(Hit) -> u32 = |hit| hit.id;

fn main() {}
