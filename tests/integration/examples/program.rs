//! The examples as programs: builds them once, runs them with arguments or talks to them over stdio.

use std::{
    env,
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use mcp_tests::{
    programs::{cargo, profile_dir, workspace_dir},
    support::{LineConnection, call},
};
use serde_json::Value;

/// The path of an example's binary; the first call builds all examples.
pub(crate) fn path(example: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let profile = profile_dir();
        let mut build = cargo();
        // with the features that `cargo test` selects, so that hardly anything is rebuilt
        build.args(["build", "--quiet", "--examples"]).current_dir(workspace_dir());
        build.arg("--target-dir").arg(profile.parent().unwrap());
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "the examples do not build");
        profile.join("examples")
    });
    folder.join(example).with_extension(env::consts::EXE_EXTENSION)
}

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
