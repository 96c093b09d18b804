use mcp_runtime::mcp_tool;

#[mcp_tool(task)]
fn build(target: String) -> String {
    target
}

fn main() {}
