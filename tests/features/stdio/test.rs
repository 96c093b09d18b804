//! The program is built with no more features than its own by `cargo test -p mcp-feature-stdio`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

#[path = "../../ui/mistakes.rs"]
mod mistakes;

#[test]
fn a_server_with_only_stdio_replies_and_ends_with_its_input() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_mcp-feature-stdio"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server");
    let mut stdin = server.stdin.take().expect("stdin");
    let mut replies = BufReader::new(server.stdout.take().expect("stdout")).lines();
    let mut request = |message: Value| -> Value {
        writeln!(stdin, "{message}").expect("to write");
        serde_json::from_str(&replies.next().expect("a reply").expect("UTF-8")).expect("JSON")
    };
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let reply = request(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    assert_eq!(reply["result"]["serverInfo"]["name"], "mcp-feature-stdio", "{reply}");
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let reply = request(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
    assert_eq!(reply["result"]["content"][0]["text"], "3", "{reply}");
    drop(stdin);
    assert!(server.wait().expect("its status").success());
}

#[test]
fn a_program_that_uses_what_needs_another_feature_gets_one_error_that_names_the_feature() {
    // with no more features than this package has, which are not those of the whole workspace
    mistakes::check(mcp_ui_compiler::compiler!(), Path::new(env!("CARGO_MANIFEST_DIR")));
    for entry in fs::read_dir("fail").expect("the folder of programs") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "stderr") {
            let golden = fs::read_to_string(&path).expect("a golden");
            let errors = golden.lines().filter(|line| line.starts_with("error")).count();
            assert_eq!(errors, 1, "{}", path.display());
            assert!(
                golden.contains("the feature `") || golden.contains("feature = \""),
                "{}",
                path.display()
            );
        }
    }
}
