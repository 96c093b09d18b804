//! The examples as programs.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use mcp_tests::programs::child::Guard;

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

/// An example that serves HTTP on a free port.
pub(crate) fn serve_http(example: &str) -> (Guard, SocketAddr) {
    let mut command = Command::new(path(example));
    let mut program = Guard(command.arg("127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(program.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("http://").unwrap().1.parse().unwrap();
    (program, address)
}

#[test]
fn each_program_has_its_items() {
    for (example, arguments, shown) in [
        ("app", &["read", "ui://poll/page.html"][..], "<!doctype html>"),
        ("content", &["prompt", "greet", r#"{"name": "Ada"}"#], "Say hello to Ada."),
        ("events", &["call", "open", r#"{"title": "db", "severity": 1}"#], "which subscribers know as evt_"),
        ("everything", &["call", "test_simple_text"], "This is a simple text response for testing."),
        ("openapi", &["call", "add_note", r#"{"text": "tea"}"#], r#"{"id":0}"#),
        ("service", &["call", "lyon_stock", r#"{"article": "tea"}"#], "3"),
        ("state", &["call", "visit"], "1"),
    ] {
        let printed = run(example, arguments, &[]);
        assert!(printed.contains(shown), "{example}: {printed}");
    }
}
