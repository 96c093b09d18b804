//! The examples as programs: runs them with arguments or talks to them over stdio.

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use crate::prelude::*;

pub(crate) use mcp_tests::programs::example::binary as path;

/// The stdout of an example run with these arguments, which must succeed.
pub(crate) fn run(example: &str, arguments: &[&str], variables: &[(&str, &OsStr)]) -> String {
    let output = Command::new(path(example))
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Calls a tool of an example over stdio, and waits until the process exits.
pub(crate) async fn over_stdio(example: &str, tool: &str, arguments: &Value) -> Value {
    let mut server = LineConnection::spawn(&mut Command::new(path(example)));
    server.send(&call(1, tool, arguments)).await;
    // the server answers calls in flight, then exits
    server.close_input().await;
    let reply = server.message().await;
    assert!(server.exit().await.0.success());
    reply
}
