use mcp_runtime::mcp_tool;

#[mcp_tool(task = always)]
async fn build(target: String) -> String {
    target
}

fn main() {}
