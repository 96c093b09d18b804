//! `task`.

mod task_unknown {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(task = always)]
    async fn build(target: String) -> String {
        target
    }
}

mod task_on_plain_fn {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(task)]
    fn build(target: String) -> String {
        target
    }
}

mod task_manual_blocking {
    use mcp_runtime::mcp_tool;

    #[mcp_tool(task = manual, blocking)]
    fn build(target: String) -> String {
        target
    }
}

mod task_restart_misspelt {
    use mcp_runtime::prelude::*;

    /// Counts
    #[mcp_tool(idempotent, task(restarts))]
    async fn count() {}
}

mod task_restart_not_idempotent {
    use mcp_runtime::prelude::*;

    /// Sends a letter
    #[mcp_tool(task(restart))]
    async fn send() {}
}

mod task_restart_manual {
    use mcp_runtime::prelude::*;

    /// Moves everything
    #[mcp_tool(idempotent, task(manual, restart))]
    async fn migrate(ctx: &Context) {
        ctx.start_task().await;
    }
}

fn main() {}
