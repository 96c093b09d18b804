#![crate_type = "lib"]

use mcp_runtime::prelude::*;

/// Builds everything.
#[mcp_tool(task)]
pub async fn build() {}
