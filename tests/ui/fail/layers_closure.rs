use mcp_runtime::mcp_tool;

#[mcp_tool(layers(|call, next| async move { next.run(&call).await }))]
fn hello() -> &'static str {
    "hello"
}

fn main() {}
