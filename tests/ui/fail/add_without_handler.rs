use mcp_runtime::prelude::*;
use mcp_runtime::tool::{ToolCall, ToolDef};

fn main() -> mcp_runtime::Result<()> {
    mcp_runtime::server!().add(ToolDef::builder("x")).run()
}
