//! A program that runs itself again with other arguments.

use std::process::{Command, Stdio};

/// Whether this process was started by [`run`].
#[allow(dead_code)]
pub fn is_child() -> bool {
    std::env::args_os().len() > 1
}

/// Runs this program with these arguments; its exit code, stdout and stderr.
pub fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let program = std::env::current_exe().expect("the program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env_remove("MCP_SERVER_KEYS").env("MCP_LOG", "off");
    // anyhow would add a backtrace to its report
    command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    let output = command.envs(environment.iter().copied()).output().expect("the output");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Expects that the commands of a server with the tool `brew` print what they should, and each error once.
#[allow(dead_code)]
pub fn expect_one_report_per_error(report: impl Fn(&str) -> String) {
    let failed = |message| (Some(1), String::new(), report(message));
    assert_eq!(run(&["call", "brew", r#"{"cups":1}"#], &[]), (Some(0), "1\n".into(), String::new()));
    assert_eq!(run(&["call", "brew", r#"{"cups":9}"#], &[]), failed("no tea left"));
    assert_eq!(
        run(&["lst"], &[]),
        failed("unknown command `lst`; did you mean `list`?\n`--help` lists the commands")
    );
    let (code, stdout, stderr) = run(&["call", "bew"], &[]);
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert!(stderr.starts_with(report("JSON-RPC error -32602:").trim_end()), "{stderr}");
    assert_eq!(stderr.matches("bew").count(), 1, "{stderr}");
}
