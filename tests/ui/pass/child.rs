//! This program again, as another one: with another `main`, arguments and environment.

use std::process::{Command, Stdio};

/// The variable with the name of the `main` of a child.
pub(crate) const MAIN: &str = "MAIN_OF_CHILD";

/// Runs this program with this `main`; its exit code, stdout and stderr.
pub(crate) fn run(
    main: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Option<i32>, String, String) {
    let program = std::env::current_exe().expect("the program");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(MAIN, main)
        .stdin(Stdio::null())
        .env_remove("MCP_SERVER_KEYS")
        .env("MCP_LOG", "off");
    // anyhow would add a backtrace to its report
    command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    let output = command.envs(environment.iter().copied()).output().expect("the output");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}
