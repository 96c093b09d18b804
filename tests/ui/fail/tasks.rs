//! `task`.

include!("../support/table.rs");

mistakes! {
    task_unknown: #[mcp_tool(task = always)] (target: String)
    task_restart_misspelt: #[mcp_tool(idempotent, task(restarts))] ()
    task_restart_not_idempotent: #[mcp_tool(task(restart))] ()
    task_restart_manual: #[mcp_tool(idempotent, task(manual, restart))] ()
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

fn main() {}
