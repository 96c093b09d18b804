//! A `main` that returns `mcp_runtime::Result`: i/o errors, strings and boxes convert, `Error::other` takes the rest.

#[path = "../support/child.rs"]
mod child;

use mcp_runtime::prelude::*;

#[mcp_tool]
fn brew(cups: u8) -> Result<u8, ToolError> {
    if cups > 3 { Err(ToolError::new("no tea left")) } else { Ok(cups) }
}

fn main() -> mcp_runtime::Result<()> {
    let _program = std::env::current_exe()?;
    let limit: usize = "8".parse().map_err(mcp_runtime::Error::other)?;
    if limit != 8 {
        return Err("not eight".into());
    }
    let boxed: Result<(), Box<dyn std::error::Error + Send + Sync>> = Ok(());
    boxed?;
    if child::is_child() {
        mcp_runtime::server!().discover().run()?;
    } else {
        child::expect_one_report_per_error(|message| format!("Error: {message}\n"));
    }
    Ok(())
}
