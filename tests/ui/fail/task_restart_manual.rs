use mcp_runtime::prelude::*;

/// Moves everything
#[mcp_tool(idempotent, task(manual, restart))]
async fn migrate(ctx: &Context) {
    ctx.start_task().await;
}

fn main() {}
