use mcp_runtime::mcp_tool;

#[mcp_tool]
fn search() -> &str {
    "nothing"
}

fn main() {}
