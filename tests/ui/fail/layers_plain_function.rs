use mcp_runtime::{
    ToolError,
    layer::{LayeredCall, Next, Outcome},
    mcp_tool,
};

fn refuse(_: LayeredCall, _: Next) -> Outcome {
    Err(ToolError::new("no"))
}

#[mcp_tool(layers(refuse))]
fn hello() -> &'static str {
    "hello"
}

fn main() {}
