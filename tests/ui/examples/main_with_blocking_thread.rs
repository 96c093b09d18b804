//! `run()` inside of `#[mcp_runtime::main]`: a thread that outlives its call does not delay the end of the program.

#[path = "../support/child.rs"]
mod child;

use std::time::{Duration, Instant};

use mcp_runtime::prelude::*;

#[mcp_tool(blocking, timeout = "50ms")]
fn stuck() {
    std::thread::sleep(Duration::from_secs(300));
}

#[mcp_runtime::main]
async fn main() -> anyhow::Result<()> {
    if child::is_child() {
        return Ok(mcp_runtime::server!().discover().run()?);
    }
    let start = Instant::now();
    let (code, stdout, stderr) = child::run(&["call", "stuck"], &[]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert!(stderr.starts_with("Error: ") && stderr.contains("stuck"), "{stderr}");
    Ok(())
}
