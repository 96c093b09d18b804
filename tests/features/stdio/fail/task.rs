use mcp_runtime::prelude::*;

/// Builds everything.
#[mcp_tool(task(required, restart), idempotent)]
async fn build() {}

fn main() {
    let _ = mcp_runtime::server!().tool::<build>().build();
}
