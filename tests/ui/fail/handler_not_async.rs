use mcp_runtime::tool::{ToolCall, ToolDef};

fn main() {
    let _ = ToolDef::builder("echo").handler(|call: ToolCall| call.arg::<String>("text"));
}
