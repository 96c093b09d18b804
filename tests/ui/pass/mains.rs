//! What `main` can return: each error is reported once.

use std::{
    process::{ExitCode, Termination},
    time::{Duration, Instant},
};

use super::child;
use mcp_runtime::prelude::*;

#[mcp_tool]
fn brew(cups: u8) -> Result<u8, ToolError> {
    if cups > 3 { Err(ToolError::new("no tea left")) } else { Ok(cups) }
}

#[mcp_tool(blocking, timeout = "50ms")]
fn stuck() {
    std::thread::sleep(Duration::from_secs(300));
}

fn returns_anyhow() -> anyhow::Result<()> {
    let limit: usize = "8".parse()?;
    assert_eq!(limit, 8);
    mcp_runtime::server!().discover_in(module_path!()).run()?;
    Ok(())
}

fn returns_boxed() -> Result<(), Box<dyn std::error::Error>> {
    let limit: usize = "8".parse()?;
    assert_eq!(limit, 8);
    mcp_runtime::server!().discover_in(module_path!()).run()?;
    Ok(())
}

fn returns_eyre() -> eyre::Result<()> {
    let limit: usize = "8".parse()?;
    assert_eq!(limit, 8);
    mcp_runtime::server!().discover_in(module_path!()).run()?;
    Ok(())
}

/// I/o errors, strings and boxes convert, `Error::other` takes the rest.
fn returns_result() -> mcp_runtime::Result<()> {
    let _program = std::env::current_exe()?;
    let limit: usize = "8".parse().map_err(mcp_runtime::Error::other)?;
    if limit != 8 {
        return Err("not eight".into());
    }
    let boxed: Result<(), Box<dyn std::error::Error + Send + Sync>> = Ok(());
    boxed?;
    mcp_runtime::server!().discover_in(module_path!()).run()
}

/// `run()` inside of `#[mcp_runtime::main]`, which is beside other attributes.
#[mcp_runtime::main]
#[allow(clippy::needless_return)]
async fn inside_a_runtime() -> anyhow::Result<()> {
    return Ok(mcp_runtime::server!().discover_in(module_path!()).run()?);
}

pub(crate) fn child(main: &str) -> ExitCode {
    // what Rust does with the result of a `main`
    match main {
        "anyhow" => returns_anyhow().report(),
        "boxed" => returns_boxed().report(),
        "eyre" => returns_eyre().report(),
        "result" => returns_result().report(),
        "inside_a_runtime" => inside_a_runtime().report(),
        _ => panic!("no `main` is named {main}"),
    }
}

pub(crate) fn main() {
    for main in ["anyhow", "boxed", "eyre", "result", "inside_a_runtime"] {
        reports_each_error_once(main);
    }
    a_thread_that_outlives_its_call_does_not_delay_the_end();
}

fn reports_each_error_once(main: &str) {
    let run = |arguments: &[&str]| child::run(main, arguments, &[]);
    let failed = |message| (Some(1), String::new(), format!("Error: {message}\n"));
    assert_eq!(run(&["call", "brew", r#"{"cups":1}"#]), (Some(0), "1\n".into(), String::new()), "{main}");
    assert_eq!(run(&["call", "brew", r#"{"cups":9}"#]), failed("no tea left"), "{main}");
    assert_eq!(
        run(&["lst"]),
        failed("unknown command `lst`; did you mean `list`?\n`--help` lists the commands"),
        "{main}"
    );
    let (code, stdout, stderr) = run(&["call", "bew"]);
    assert_eq!((code, &*stdout), (Some(1), ""), "{main}");
    assert!(stderr.starts_with("Error: JSON-RPC error -32602:"), "{main}: {stderr}");
    assert_eq!(stderr.matches("bew").count(), 1, "{main}: {stderr}");
}

fn a_thread_that_outlives_its_call_does_not_delay_the_end() {
    let start = Instant::now();
    let (code, stdout, stderr) = child::run("inside_a_runtime", &["call", "stuck"], &[]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert!(stderr.starts_with("Error: ") && stderr.contains("stuck"), "{stderr}");
}
