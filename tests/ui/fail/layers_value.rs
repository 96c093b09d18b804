use mcp_runtime::{
    layer::{LayeredCall, Next, Outcome},
    mcp_tool,
};

async fn timing(call: LayeredCall, next: Next) -> Outcome {
    next.run(&call).await
}

#[mcp_tool(layers = timing)]
fn hello() -> &'static str {
    "hello"
}

fn main() {}
