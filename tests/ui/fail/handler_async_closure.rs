use mcp_runtime::prelude::*;
use mcp_runtime::tool::{ToolCall, ToolDef};

fn main() -> mcp_runtime::Result<()> {
    let prefix = String::from("a");
    let t = ToolDef::builder("x").handler(async move |call: ToolCall| Ok::<_, ToolError>(format!("{prefix}{}", call.arguments)));
    mcp_runtime::server!().add(t).run()
}
