//! The examples as programs over stdio and HTTP.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Command, Stdio},
};

use mcp_tests::{
    programs::{child::Guard, example::binary},
    support::{HttpRequest, TestFolder, text_of},
};
use serde_json::json;

/// The stdout of an example run with these arguments, which must succeed.
pub(super) fn run(example: &str, arguments: &[&str], variables: &[(&str, &OsStr)]) -> String {
    let output = Command::new(binary(example))
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An example that serves HTTP on a free port.
pub(super) fn serve_http(example: &str) -> (Guard, SocketAddr) {
    let mut command = Command::new(binary(example));
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

#[test]
fn the_exchange_example_lists_its_own_tool_and_the_operations_of_the_drive() {
    let variables = [
        ("ISSUER", "https://id.example.com".as_ref()),
        ("DRIVE", "https://drive.example.com".as_ref()),
        ("DRIVE_SECRET", "secret".as_ref()),
    ];
    let listed = run("exchange", &["list"], &variables);
    assert!(listed.contains("token_length") && listed.contains("list_files"), "{listed}");
}

#[test]
fn the_repo_example_searches_a_tree() {
    let tree = TestFolder::default();
    tree.write("src/main.py", "print('needle')\n");
    let variables = [("REPO_ROOT", tree.as_os_str())];
    let found = run("repo", &["call", "search", r#"{"pattern": "needle"}"#], &variables);
    assert!(found.contains("src/main.py"), "{found}");
}

#[test]
fn the_convert_example_reads_settings_from_its_environment() {
    let folder = TestFolder::default();
    let ledger = folder.join("ledger.txt");
    let variables = [
        ("LEDGER_RATES_KEY", "sk-demo".as_ref()),
        ("LEDGER_DATABASE", ledger.as_os_str()),
        ("XDG_CONFIG_HOME", folder.as_os_str()),
    ];
    let call = ["--base", "EUR", "call", "convert", r#"{"amount": 5, "to": "CHF"}"#];
    assert_eq!(run("convert", &call, &variables), "5 Eur = 4.64 Chf\n");
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "5 Eur = 4.64 Chf\n");
}

#[tokio::test]
async fn the_axum_example_serves_http() {
    let (_program, address) = serve_http("axum");
    let call = HttpRequest::modern(1, "tools/call", json!({ "name": "whoami", "arguments": {} }));
    let response = call.header("Authorization", "Bearer ada-secret").send(address).await;
    assert_eq!(text_of(&response.json()), "ada");
}
