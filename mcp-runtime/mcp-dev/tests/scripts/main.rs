//! The program with servers that are small scripts, over stdio: what is printed, where, and with which exit code. The scripts need
//! Python, so that `cargo test` leaves them out, and speak an older revision, as most servers do.

mod dev;
#[path = "../home/mod.rs"]
mod home;
mod page;

use std::{fs, process::Output};

use serde_json::Value;

use home::Folder;

/// A server in another language.
const SERVER: &str = r#"
import json, os, sys

tools = [
    {"name": "echo", "description": "Says it again.\nAnd again.", "inputSchema": {
        "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "slow", "description": "Takes its time.", "inputSchema": {"type": "object"}},
    {"name": "fails", "inputSchema": {"type": "object"}},
]
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        continue
    def send(value):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **value}) + "\n")
        sys.stdout.flush()
    result, error = {}, None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "script", "version": "3"},
                  "instructions": "Be brief.", "capabilities": {"tools": {}, "resources": {}, "prompts": {}}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "resources/list":
        result = {"resources": [{"uri": "note://1", "name": "one"}]}
    elif method == "resources/templates/list":
        result = {"resourceTemplates": []}
    elif method == "prompts/list":
        result = {"prompts": [{"name": "ask", "arguments": [{"name": "what", "required": True}]}]}
    elif method == "prompts/get":
        text = json.dumps(params["arguments"])
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": params["uri"], "text": "a note"}]}
    elif method == "tools/call":
        name, token = params["name"], params.get("_meta", {}).get("progressToken")
        text = params.get("arguments", {}).get("text", "")
        if name == "slow":
            for step in (1, 2):
                send({"method": "notifications/progress", "params": {
                    "progressToken": token, "progress": step, "total": 2, "message": "step\u001b[2J"}})
            text = os.environ.get("GIVEN", "")
        result = {"content": [{"type": "text", "text": text or "it failed"}], "isError": name == "fails"}
    else:
        error = {"code": -32601, "message": "unknown method"}
    send({"id": message["id"], "error": error} if error else {"id": message["id"], "result": result})
"#;

impl Folder {
    fn with_server() -> Self {
        let folder = Self::new();
        fs::write(folder.0.join("server.py"), SERVER).expect("a file");
        folder
    }

    /// With the server behind the arguments.
    fn run_with_server(&self, arguments: &[&str]) -> Output {
        let server = ["--", "python3", "server.py"];
        self.run(&arguments.iter().copied().chain(server).collect::<Vec<_>>())
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run_with_server(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }
}

#[test]
fn a_server_in_another_language_is_listed_called_and_read() {
    let folder = Folder::with_server();
    let list = folder.stdout(&["list"]);
    for part in
        ["tools\n  echo   Says it again.\n      echo(text: string)\n", "resources\n  note://1\n", "ask(what)"]
    {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert_eq!(folder.stdout(&["call", "echo", r#"{"text": "tea"}"#]), "tea\n");
    assert_eq!(folder.stdout(&["read", "note://1"]), "a note\n");
    assert_eq!(folder.stdout(&["prompt", "ask", r#"{"what": 5}"#]), "user: {\"what\": \"5\"}\n");
    let schema: Value = serde_json::from_str(&folder.stdout(&["schema"])).expect("JSON");
    assert_eq!(schema["server"]["name"], "script");
    assert_eq!(schema["instructions"], "Be brief.");
    assert_eq!(schema["tools"][0]["inputSchema"]["required"][0], "text");
    assert_eq!(schema["resourceTemplates"].as_array().map(Vec::len), Some(0));
    let result: Value =
        serde_json::from_str(&folder.stdout(&["call", "--json", "echo", r#"{"text":"a"}"#])).expect("JSON");
    assert_eq!(result["content"][0]["text"], "a");
}

#[test]
fn progress_of_a_long_call_goes_to_stderr_and_its_result_to_stdout() {
    let folder = Folder::with_server();
    let output = folder.run_with_server(&["call", "slow", "--env", "GIVEN=given"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "given\n");
    assert!(err.contains("progress: 1/2 step\\u{1b}[2J") && err.contains("progress: 2/2"), "{err}");
}

#[test]
fn failures_exit_with_1() {
    let folder = Folder::with_server();
    for (arguments, code, message) in [
        (&["call", "fails", "--", "python3", "server.py"][..], 1, "error: it failed"),
        (&["call", "echo", "[1]", "--", "python3", "server.py"], 1, "not a JSON object"),
        (
            &["list", "--timeout", "1", "--", "python3", "-c", "import sys; sys.stdin.read()"],
            1,
            "raise `--timeout SECONDS`",
        ),
    ] {
        let output = folder.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(message) && !text.contains("planted"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_lock_is_written_and_says_what_has_changed() {
    let folder = Folder::with_server();
    let lock = folder.0.join("mcp.lock.json");
    let missing = folder.run_with_server(&["lock", "--check"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("`mcp-dev lock` writes it"));
    folder.stdout(&["lock"]);
    let written = fs::read_to_string(&lock).expect("a file");
    assert!(written.contains("\n    \"echo\": {\"description\""), "{written}");
    let unknown = "settings and scopes are not compared: the server does not print them (`schema --json`)\n";
    let unchanged = format!("nothing has changed in what clients see\n{unknown}");
    assert_eq!(folder.stdout(&["lock", "--check"]), unchanged);
    for (old, new, code, report) in [
        ("Takes its time.", "Is slow.", 3, "routing   tool slow: its description has changed\n"),
        (
            "{\"name\": \"fails\"",
            "{\"name\": \"more\"",
            1,
            "breaking  tool fails: is gone\nadditive  tool more: is new\n",
        ),
        ("\"required\": [\"text\"]", "\"required\": []", 3, "additive  tool echo: `text`: is optional now\n"),
    ] {
        fs::write(folder.0.join("server.py"), SERVER.replacen(old, new, 1)).expect("a file");
        let output = folder.run_with_server(&["lock", "--check"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.starts_with(report) && text.contains(" version"), "{text}");
        assert!(text.ends_with(unknown), "{text}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("`mcp-dev lock`"));
        assert_eq!(fs::read_to_string(&lock).expect("a file"), written);
    }
    // what it cannot read of the server it does not replace
    fs::write(folder.0.join("server.py"), SERVER).expect("a file");
    let of_program = written.replacen("\"format\"", "\"source\": \"program\",\n  \"format\"", 1);
    fs::write(&lock, &of_program).expect("a file");
    let refused = folder.run_with_server(&["lock"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && text.contains("is left alone"), "{text}");
    assert_eq!(fs::read_to_string(&lock).expect("a file"), of_program);
    assert_eq!(folder.stdout(&["lock", "--check"]), unchanged);
    // nor what is not a contract
    fs::write(&lock, "{").expect("a file");
    for arguments in [&["lock"][..], &["lock", "--check"]] {
        assert_eq!(folder.run_with_server(arguments).status.code(), Some(1));
        assert_eq!(fs::read_to_string(&lock).expect("a file"), "{");
    }
}

/// As a cloned repository may have it.
#[cfg(unix)]
#[test]
fn a_lock_that_is_a_link_to_a_file_elsewhere_is_neither_read_nor_written() {
    let (folder, elsewhere) = (Folder::with_server(), Folder::new());
    folder.stdout(&["lock"]);
    let lock = folder.0.join("mcp.lock.json");
    for target in ["there.json", "new.json"] {
        let target = elsewhere.0.join(target);
        if target.ends_with("there.json") {
            fs::rename(&lock, &target).expect("a file");
        }
        std::os::unix::fs::symlink(&target, &lock).expect("a link");
        let before = fs::read(&target).ok();
        for arguments in [&["lock"][..], &["lock", "--check"]] {
            let output = folder.run_with_server(arguments);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains("it leads out of") || text.contains("leads nowhere"), "{text}");
        }
        assert_eq!(fs::read(&target).ok(), before);
        fs::remove_file(&lock).expect("the link stays a link");
    }
}

#[test]
fn the_doctor_says_what_clients_refuse_and_fails_only_on_that() {
    let folder = Folder::with_server();
    let output = folder.run_with_server(&["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    for line in [
        "warning  tool echo: the argument `text` has no description\n",
        "warning  tool fails: has no description: models choose by it\n",
        "advice   tool slow: its results have no schema",
        "tool echo\n",
        " of 8000 in the budget\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let all: Value = serde_json::from_str(&folder.stdout(&["doctor", "--json"])).expect("JSON");
    assert_eq!(all["findings"][0]["severity"], "warning");
    assert!(all["tokens"]["total"].as_u64().is_some_and(|total| total > 20), "{all}");
    assert_eq!(all["tokens"]["items"][1]["item"], "tool echo");
    for (arguments, code) in [
        (&["doctor", "--strict"][..], 1),
        (&["doctor", "--budget", "10"], 1),
        (&["doctor", "--budget", "0"], 2),
    ] {
        assert_eq!(folder.run_with_server(arguments).status.code(), Some(code), "{arguments:?}");
    }
    fs::write(
        folder.0.join("server.py"),
        SERVER.replacen("\"name\": \"echo\"", "\"name\": \"\u{1b}echo!\"", 1),
    )
    .expect("a file");
    let output = folder.run_with_server(&["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with(r"error    tool \u{1b}echo!: its name has characters"), "{text}");
}

#[test]
fn a_list_that_a_server_declares_and_does_not_have_is_empty_and_other_errors_name_their_method() {
    let folder = Folder::with_server();
    let with = |error: &str| {
        let script = SERVER.replacen("result = {\"resourceTemplates\": []}", &format!("error = {error}"), 1);
        assert_ne!(script, SERVER);
        fs::write(folder.0.join("server.py"), script).expect("a file");
    };
    with(r#"{"code": -32601, "message": "Method not found"}"#);
    assert!(folder.stdout(&["list"]).contains("resources\n  note://1\n"));
    let schema: Value = serde_json::from_str(&folder.stdout(&["schema"])).expect("JSON");
    assert_eq!(schema["resourceTemplates"], serde_json::json!([]));
    folder.stdout(&["lock"]);
    let said = folder.stdout(&["doctor"]);
    assert!(
        said.contains("warning  server: declares the capability and has no `resources/templates/list`"),
        "{said}"
    );
    with(r#"{"code": -32000, "message": "no database"}"#);
    for command in ["list", "schema", "lock", "doctor"] {
        let output = folder.run_with_server(&[command]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("error: `resources/templates/list`: no database (-32000)"), "{text}");
        // what there is besides is shown
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(command == "list", shown.contains("note://1") && shown.contains("ask(what)"), "{shown}");
    }
}

/// Writes the clipboard and clears the screen, also by one character, turns the line around, and has characters that are not seen.
const HOSTILE: &str = "\\u001b]52;c;eA==\\u0007\\u001b[2J\\u009b2J\\u202e\\U000e0041";

#[test]
fn no_text_of_a_server_controls_the_terminal() {
    let folder = Folder::new();
    let mut script = SERVER.to_owned();
    for part in [
        "Says it again.",
        "\"fails\"",
        "note://1",
        "\"one\"",
        "\"ask\"",
        "\"what\"",
        "Be brief.",
        "it failed",
        "unknown method",
        "\"script\"",
    ] {
        assert!(script.contains(part), "{part}");
        let hostile = match part.strip_suffix('"') {
            Some(text) => format!("{text}{HOSTILE}\""),
            None => format!("{part}{HOSTILE}"),
        };
        script = script.replace(part, &hostile);
    }
    let script = script
        .replace("for line in sys.stdin:", "print('HOSTILE', flush=True)\nprint('HOSTILE', file=sys.stderr, flush=True)\nfor line in sys.stdin:")
        .replace("HOSTILE", HOSTILE);
    fs::write(folder.0.join("server.py"), script).expect("a file");
    let fails: String =
        serde_json::from_str(&format!("\"fails{}\"", HOSTILE.replace("\\U000e0041", "\\udb40\\udc41")))
            .expect("a text");
    for (arguments, code) in [
        (&["list"][..], 0),
        (&["list", "--json"], 0),
        (&["schema"], 0),
        (&["doctor"], 1),
        (&["doctor", "--json"], 1),
        (&["lock"], 0),
        (&["lock", "--check"], 0),
        (&["call", &fails], 1),
        (&["call", "--json", &fails], 1),
        (&["prompt", "none"], 0),
        (&["dev"], 0),
    ] {
        let output = folder.run_with_server(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        // the loop passes the protocol on as it is
        let out = if arguments == ["dev"] { Vec::new() } else { output.stdout };
        for stream in [out, output.stderr] {
            let text = String::from_utf8(stream).expect("text");
            let is_shown = |c: char| c == '\n' || !(c.is_control() || "\u{202e}\u{e0041}".contains(c));
            assert!(text.chars().all(is_shown), "{arguments:?}: {text:?}");
        }
    }
}

#[test]
fn the_doctor_finds_output_that_is_not_a_message_and_items_of_one_name_which_no_lock_keeps() {
    let folder = Folder::with_server();
    let changed = |old: &str, new: &str| {
        let script = SERVER.replacen(old, new, 1);
        assert_ne!(script, SERVER);
        fs::write(folder.0.join("server.py"), script).expect("a file");
    };
    changed("for line in", "print('not json', flush=True)\nfor line in");
    let output = folder.run_with_server(&["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let line = "error    server: writes lines to stdout that are not messages (1, the first is `not json`)";
    assert!(text.starts_with(line), "{text}");
    changed("\"name\": \"slow\"", "\"name\": \"echo\"");
    let output = folder.run_with_server(&["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error    tool echo: is listed 2 times"), "{text}");
    for arguments in [&["lock"][..], &["lock", "--check"]] {
        let output = folder.run_with_server(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("tool echo: is listed 2 times"), "{text}");
    }
    assert!(!folder.0.join("mcp.lock.json").exists());
}
