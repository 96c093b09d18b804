//! A `main` that returns `anyhow::Result`.

#[path = "../support/child.rs"]
mod child;

use mcp_runtime::prelude::*;

#[mcp_tool]
fn brew(cups: u8) -> Result<u8, ToolError> {
    if cups > 3 { Err(ToolError::new("no tea left")) } else { Ok(cups) }
}

fn main() -> anyhow::Result<()> {
    let limit: usize = "8".parse()?;
    assert_eq!(limit, 8);
    if child::is_child() {
        mcp_runtime::server!().discover().run()?;
    } else {
        child::expect_one_report_per_error(|message| format!("Error: {message}\n"));
    }
    Ok(())
}
