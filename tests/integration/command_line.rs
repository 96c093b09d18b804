//! The command line that every server has.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Output, Stdio},
};

use crate::{prelude::*, process::fixture};

fn run(arguments: &[&str]) -> Output {
    fixture().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The stdout of a command that succeeds.
fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and stderr of a command that fails; its stdout must be empty.
fn failure(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn items_can_be_listed_called_and_read_from_a_shell() {
    assert_eq!(stdout(&["call", "echo", r#"{"message":"hi"}"#]), "hi\n");
    assert_eq!(stdout(&["call", "slow", r#"{"ms":1}"#]), "slept\n");
    assert_eq!(stdout(&["read", "note://one"]), "noted\n");
    assert_eq!(stdout(&["prompt", "greet", r#"{"name":"Bo"}"#]), "user: Greet Bo.\n");
    let list = stdout(&["list"]);
    // columns are as wide as the longest name of the fixture server
    let words: Vec<_> =
        list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in
        ["echo Echoes", "note://one A note", "echo(message: string)", "greet(name)", "slow(ms: integer 0..)"]
    {
        assert!(words.iter().any(|found| found == line), "{line}: {list}");
    }
    // what has no arguments has no second line
    assert!(!list.contains("wait()"), "{list}");
}

#[test]
fn a_tool_that_is_a_task_only_is_called_and_waited_for() {
    for tool in ["nap_as_task", "nap_as_task_only"] {
        assert_eq!(stdout(&["call", tool, r#"{"ms":1}"#]), "napped\n", "{tool}");
    }
    assert_eq!(failure(&["call", "nap_as_task_only", r#"{"ms":0}"#]), (Some(1), "Error: not tired\n".into()));
    // the time limit of the tool ends it
    let (code, message) = failure(&["call", "nap_as_task_only", r#"{"ms":300000}"#]);
    assert!(code == Some(1) && message.contains("nap_as_task_only"), "{message}");
}

#[test]
fn a_prompt_argument_that_is_null_is_absent() {
    assert_eq!(stdout(&["prompt", "toast", r#"{"name":null}"#]), "user: To all.\n");
    assert_eq!(stdout(&["prompt", "toast", r#"{"name":7}"#]), "user: To 7.\n");
    let (_, message) = failure(&["prompt", "greet", r#"{"name":null}"#]);
    assert!(message.starts_with("Error: JSON-RPC error -32602: "), "{message}");
}

#[test]
fn list_and_schema_print_stable_json() {
    let list: Value = serde_json::from_str(&stdout(&["list", "--json"])).unwrap();
    assert_eq!(list["tools"][0]["name"], "echo");
    let schema = stdout(&["schema"]);
    assert_eq!(schema, stdout(&["schema"]));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["server"]["name"], "fixture");
    assert_eq!(schema["tools"][0]["inputSchema"]["required"][0], "message");
    assert_eq!(schema["prompts"][0]["arguments"][0]["description"], "Whom");
    assert!(schema["scopes"].is_object(), "{}", schema["scopes"]);
}

#[test]
fn events_are_listed_described_and_printed_from_a_shell() {
    let list = stdout(&["list"]);
    assert!(
        list.contains("clock.tick  Ticks") && list.contains("clock.tick(every: integer 1..=9)"),
        "{list}"
    );
    let schema: Value = serde_json::from_str(&stdout(&["schema"])).unwrap();
    assert_eq!(schema["events"][0]["payloadSchema"]["properties"]["n"]["type"], "integer");
    let json: Value = serde_json::from_str(&stdout(&["list", "--json"])).unwrap();
    assert_eq!(json["events"][0]["delivery"], json!(["poll", "push"]));

    let mut program = fixture();
    program.args(["events", "clock.tick", r#"{"every":2}"#]).env("FIXTURE_TICKS", "1").stdin(Stdio::null());
    let mut program = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let mut last = None;
    for _ in 0..3 {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let n = event["data"]["n"].as_u64().unwrap();
        assert_eq!((&event["name"], n % 2), (&"clock.tick".into(), 0));
        assert!(last.replace(n).is_none_or(|last| n == last + 2), "{event}");
        let keys: Vec<_> = event.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["data", "eventId", "name", "timestamp"]);
    }
    // closing its stdout ends it
    drop(lines);
    assert!(program.wait().unwrap().success());

    let (code, message) = failure(&["events", "clock.tick", r#"{"every":10}"#]);
    assert!(code == Some(1) && message.contains("invalid arguments for event `clock.tick`"), "{message}");
    let (_, message) = failure(&["events", "clock.tock"]);
    assert!(message.contains("did you mean `clock.tick`?"), "{message}");
    assert!(failure(&["events"]).1.contains("`events NAME [JSON]`"));
}

#[test]
fn help_and_version_name_the_server() {
    assert_eq!(stdout(&["--version"]), concat!("fixture ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = stdout(&["--help"]);
    assert!(
        help.starts_with("fixture ") && help.contains("usage: fixture") && help.contains("--http"),
        "{help}"
    );
}

#[test]
fn a_call_from_a_shell_says_who_calls_and_with_which_scopes_and_claims() {
    let ada = ["call", "whoami", "--as", "ada", "--scope", "notes:read", "--claim", "tenant=acme"];
    assert_eq!(stdout(&ada), "ada of \"acme\" with notes:read\n");
    // without a caller, the function cannot be called, and the log says what to write
    let output = run(&["call", "whoami"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && stderr.contains("--as SUBJECT"), "{stderr}");
    assert!(stderr.contains("needs a caller who is authenticated"), "{stderr}");
    let as_host = || {
        let mut program = fixture();
        program.env("FIXTURE_SCOPED", "1").stdin(Stdio::null());
        program
    };
    let list = |arguments: &[&str]| {
        let output = as_host().arg("list").args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(list(&[]).contains("purge"), "the host sees everything");
    assert!(!list(&["--as", "ada"]).contains("purge"), "a caller sees what its scopes allow");
    assert!(list(&["--as", "ada", "--scope", "admin"]).contains("purge"));
    let output = as_host().args(["call", "purge", "--as", "ada"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("unknown tool `purge`") && stderr.contains("`--scope SCOPE`"), "{stderr}");
    let (code, message) = failure(&["call", "whoami", "--scope", "notes:read"]);
    assert!(code == Some(1) && message.contains("`--as SUBJECT` is missing"), "{message}");
}

#[test]
fn the_caller_on_stdio_is_the_one_of_the_command_line_unless_another_is_named() {
    let whoami = |arguments: &[&str]| {
        let mut program = fixture();
        program.env("FIXTURE_CALLER", "bob").stdin(Stdio::null()).args(["call", "whoami"]).args(arguments);
        String::from_utf8(program.output().unwrap().stdout).unwrap()
    };
    assert_eq!(whoami(&[]), "bob of null with \n");
    assert_eq!(whoami(&["--as", "ada"]), "ada of null with \n");
}

#[test]
fn failures_are_reported_on_stderr_with_an_exit_code() {
    let (code, message) = failure(&["call", "echo", "{}"]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("Error: ") && message.contains("message"), "{message}");
    let (code, message) = failure(&["call", "ecko"]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("Error: JSON-RPC error -32602: ") && message.contains("echo"), "{message}");
    assert_eq!(
        failure(&["lst"]),
        (Some(1), "Error: unknown command `lst`; did you mean `list`?\n`--help` lists the commands\n".into())
    );
}

#[test]
fn an_address_in_use_is_reported_with_its_cause() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, message) = failure(&["--http", &address]);
    assert_eq!(code, Some(1));
    let start = format!("Error: cannot listen on `{address}`\n  caused by: ");
    assert!(message.starts_with(&start) && message.lines().count() == 2, "{message}");
}

#[test]
fn a_blocking_thread_does_not_delay_the_end() {
    let start = std::time::Instant::now();
    let (code, message) = failure(&["call", "stuck"]);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert_eq!(code, Some(1));
    assert!(message.contains("stuck"), "{message}");
}

#[test]
fn keys_come_from_the_environment() {
    let output = fixture().arg("list").env("MCP_SERVER_KEYS", "secret").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(message.contains("`MCP_SERVER_KEYS`") && !message.contains("secret"), "{message}");
}

#[test]
fn keys_in_the_environment_that_nothing_reads_are_a_warning() {
    let key = "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210";
    for (keys, warns) in [(Some(key), true), (None, false)] {
        let mut command = fixture();
        command.env("FIXTURE_SERVES", "1").env_remove("MCP_SERVER_KEYS").stdin(Stdio::null());
        let output = command.envs(keys.map(|keys| ("MCP_SERVER_KEYS", keys))).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message.contains("stores.keys_from_env()"), warns, "{message}");
        assert!(!message.contains(key), "{message}");
    }
}

#[test]
fn a_server_that_was_built_before_shares_nothing_and_says_so() {
    let output = fixture().arg("list").env("MCP_SHARED", "redis://:sesame@127.0.0.1").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("this server has no shared store"), "{message}");
    assert!(message.contains("`MCP_SHARED`") && !message.contains("sesame"), "{message}");
}

#[test]
fn without_arguments_stdio_is_served() {
    assert_eq!(stdout(&[]), "");
}

#[test]
fn mcp_log_sets_the_log_level() {
    let errors = |level: &str| {
        let output = fixture().args(["call", "fails"]).env("MCP_LOG", level).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(errors("warn").contains("secret of the error"));
    assert!(!errors("off").contains("secret of the error"));
}

#[test]
fn a_program_can_read_options_of_its_own_first() {
    assert!(stdout(&["--shout", "--help"]).contains("SHOUTING"));
    assert!(!stdout(&["--help"]).contains("SHOUTING"));
    assert_eq!(stdout(&["--shout", "call", "echo", r#"{"message":"hi"}"#]), "hi\n");
    let (code, message) = failure(&["call", "--shout"]);
    assert!(code == Some(1) && message.contains("unknown option `--shout`"), "{message}");
}

#[test]
fn what_a_tool_prints_is_part_of_the_output_of_call() {
    let printed = stdout(&["call", "prints"]);
    assert!(printed.contains("a stray line\n") && printed.ends_with("printed\n"), "{printed}");
}

#[test]
fn without_a_terminal_a_question_is_an_error_that_says_so() {
    let (code, message) = failure(&["call", "asks"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("-32021") && message.contains("call it in a terminal"), "{message}");
    // other errors have no such advice
    let (_, message) = failure(&["call", "ecko"]);
    assert!(!message.contains("terminal"), "{message}");
}

/// A terminal, and its end for a program.
#[cfg(unix)]
fn terminal() -> (std::fs::File, std::fs::File) {
    use std::{ffi::OsStr, fs::File, os::unix::ffi::OsStrExt as _};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("its other end");
    unlockpt(&terminal).expect("its other end");
    let name = ptsname(&terminal, Vec::new()).expect("its name");
    let other = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes()));
    (File::from(terminal), other.expect("its other end"))
}

#[cfg(unix)]
#[test]
fn texts_of_results_are_unchanged_in_a_pipe_and_do_not_control_a_terminal() {
    use std::io::Read as _;

    let hostile = "\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{e0041} one\ttwo";
    let arguments = json!({ "message": hostile }).to_string();
    assert_eq!(stdout(&["call", "echo", &arguments]), format!("{hostile}\n"));
    let (mut terminal, other) = terminal();
    let status =
        fixture().args(["call", "echo", &arguments]).stdin(Stdio::null()).stdout(other).status().unwrap();
    assert!(status.success());
    let mut shown = Vec::new();
    // the end of a terminal without a program is an error
    let _end = terminal.read_to_end(&mut shown);
    let shown = String::from_utf8(shown).unwrap();
    let expected = r"\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{e0041} one";
    assert!(shown.starts_with(expected) && shown.trim_end().ends_with("two"), "{shown:?}");
}

#[cfg(unix)]
#[test]
fn questions_are_asked_in_a_terminal() {
    use std::io::Write as _;

    let run = |typed: &str| {
        let (mut terminal, input) = terminal();
        terminal.write_all(typed.as_bytes()).expect("typing");
        let output = fixture().args(["call", "asks"]).stdin(input).output().unwrap();
        drop(terminal);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, answer, questions) = run("\nAda\nmany\n3\nyes\n");
    assert_eq!((code, &*answer), (Some(0), "Ada: 3\n"), "{questions}");
    for shown in ["What may we bring?", "name (Whom it is for): ", "that is not an integer", "3 for Ada?"] {
        assert!(questions.contains(shown), "{shown}: {questions}");
    }
    let (code, answer, questions) = run("Ada\n\nno\n");
    assert_eq!((code, &*answer), (Some(1), ""), "{questions}");
    // Ctrl-D
    let (code, _, questions) = run("\u{4}");
    assert!(code == Some(1) && !questions.contains("for Ada"), "{questions}");
}
