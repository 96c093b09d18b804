use mcp_runtime::mcp_tool;

#[mcp_tool(layers())]
fn hello() -> &'static str {
    "hello"
}

fn main() {}
