//! `task`.

include!("../support/table.rs");

mistakes! {
    task_unknown: #[mcp_tool(task = always)] (target: String)
    task_restart_misspelt: #[mcp_tool(idempotent, task(restarts))] ()
    task_restart_not_idempotent: #[mcp_tool(task(restart))] ()
    task_restart_manual: #[mcp_tool(idempotent, task(manual, restart))] ()
}

fn main() {}
