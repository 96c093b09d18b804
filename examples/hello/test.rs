//! The README's program, as a user runs it.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

fn hello(arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_hello"));
    program.args(arguments);
    program
}

#[test]
fn it_is_listed_called_and_explains_a_wrong_argument() {
    let run = |arguments: &[&str]| {
        let output = hello(arguments).stdin(Stdio::null()).output().expect("the program");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let (listed, tools) = run(&["list"]);
    assert!(listed && tools.contains("greet(name: string, times?: integer"), "{tools}");
    assert_eq!(run(&["call", "greet", r#"{"name": "Ada"}"#]), (true, "Hello, Ada!\n".to_owned()));
    let (called, message) = run(&["call", "greet", r#"{"nam": "Ada"}"#]);
    assert!(!called && message.contains("did you mean `name`"), "{message}");
}

#[test]
fn it_serves_stdio() {
    let mut server = hello(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada","times":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut stdin = server.stdin.take().expect("its stdin");
    writeln!(stdin, "{request}").expect("to write");
    // it answers the call in flight, then exits
    drop(stdin);
    let output = server.wait_with_output().expect("its output");
    let reply = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && reply.contains(r#""text":"Hello, Ada! Hello, Ada!""#), "{reply}");
}
