use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search() -> std::time::Duration {
    std::time::Duration::ZERO
}

fn main() {}
