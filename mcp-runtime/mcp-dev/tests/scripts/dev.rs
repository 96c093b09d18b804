//! The author's loop between a client that is written here, line by line, and servers that are small scripts, replaced while
//! the client is connected; and one crate that is really built.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::home::Folder;

const LIMIT: Duration = Duration::from_secs(600);

/// `VERSION` is replaced in each version of it.
const SERVER: &str = r#"
import json, os, sys, time

def send(value):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **value}) + "\n")
    sys.stdout.flush()

level, initialized, uris = None, False, []
for line in sys.stdin:
    message = json.loads(line)
    if isinstance(message, list):
        for one in message:
            if "hang" not in json.dumps(one):
                send({"id": one["id"], "result": {"batch": True}})
        continue
    method, params, id = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": params["protocolVersion"],
              "serverInfo": {"name": "script", "version": "VERSION"},
              "capabilities": {"tools": {}, "resources": {"subscribe": True}, "logging": {}}}})
    elif method == "notifications/initialized":
        initialized = True
    elif method == "logging/setLevel":
        level = params["level"]
        send({"id": id, "result": {}})
    elif method == "resources/subscribe":
        uris.append(params["uri"])
        send({"id": id, "result": {}})
    elif method == "subscriptions/listen":
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        send({"method": "notifications/subscriptions/acknowledged",
              "params": {"_meta": meta, "notifications": params["notifications"]}})
    elif method == "events/stream":
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        cursor = "VERSION after " + str(params["cursor"])
        send({"method": "notifications/events/active", "params": {"_meta": meta, "cursor": cursor}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [
            {"name": "hang", "annotations": {"readOnlyHint": True}, "inputSchema": {
                "type": "object", "properties": {"pin": {"type": "string", "format": "password"}}}}]}})
    elif method == "tools/call":
        name = params["name"]
        if name == "version":
            state = json.dumps({"version": "VERSION", "level": level, "initialized": initialized, "uris": uris})
            send({"id": id, "result": {"content": [{"type": "text", "text": state}]}})
        elif name == "ask":
            send({"id": 1, "method": "elicitation/create", "params": {"message": "VERSION?"}})
        elif name == "flood":
            for number in range(1030):
                send({"id": number, "method": "roots/list"})
        elif name == "crash":
            sys.stderr.write("the planted reason\n")
            sys.stderr.flush()
            os._exit(3)
        elif name == "hang" and "VERSION" != "1":
            send({"id": id, "result": {"content": [{"type": "text", "text": "from VERSION"}]}})
    elif id is not None and method is None:
        send({"method": "notifications/message", "params": {"level": "info", "data": "VERSION got " + json.dumps(message)}})
"#;

/// A crate that says its version on every line.
const PROGRAM: &str = r##"
fn main() {
    for _ in std::io::stdin().lines() {
        println!("{}", r#"{"jsonrpc":"2.0","method":"version","params":{"version":VERSION}}"#);
    }
}
"##;

/// A crate without dependencies, which cargo builds in a second.
struct Crate(PathBuf);

impl Crate {
    /// In a folder, with these words as its source.
    fn new(folder: &Folder, name: &str, source: &str) -> Self {
        fs::create_dir(folder.0.join("src")).expect("a folder");
        let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n");
        fs::write(folder.0.join("Cargo.toml"), manifest).expect("a file");
        let own = Self(folder.0.join("src/main.rs"));
        own.save(source);
        own
    }

    fn save(&self, source: &str) {
        fs::write(&self.0, source).expect("a file");
    }

    fn save_version(&self, version: &str) {
        self.save(&program(version));
    }

    /// A source that the compiler refuses.
    const MISTAKE: &str = "fn main() { planted }";
}

fn program(version: &str) -> String {
    PROGRAM.replace("VERSION", version)
}

/// The program between this test and a server.
pub(crate) struct Loop {
    pub(crate) folder: Folder,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

fn lines_of(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Loop {
    /// With version 1 of the script.
    fn start(options: &[&str]) -> Self {
        let folder = Folder::new();
        write(&folder, "1");
        let words: Vec<&str> = options.iter().copied().chain(["--", "python3", "server.py"]).collect();
        Self::start_in(folder, &words)
    }

    pub(crate) fn start_in(folder: Folder, words: &[&str]) -> Self {
        Self::start_with(folder, words, &[])
    }

    /// With variables of the environment.
    fn start_with(folder: Folder, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-dev"));
        command.args(words).current_dir(&folder.0).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let stdin = child.stdin.take();
        let lines = lines_of(child.stdout.take().expect("a pipe"));
        let stderr = lines_of(child.stderr.take().expect("a pipe"));
        Self { folder, child, stdin, lines, stderr }
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an open pipe");
        writeln!(stdin, "{message}").and_then(|()| stdin.flush()).expect("a reader");
    }

    fn line(&self) -> String {
        self.lines
            .recv_timeout(LIMIT)
            .unwrap_or_else(|error| panic!("no message: {error}; {}", self.stderr_so_far()))
    }

    pub(crate) fn next(&self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }

    /// The next message that is such a one; others are dropped.
    fn next_where(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if is_it(&message) {
                return message;
            }
        }
    }

    pub(crate) fn answer_to(&self, id: &Value) -> Value {
        self.next_where(|message| message["id"] == *id && message.get("method").is_none())
    }

    pub(crate) fn wait_for_stderr(&self, part: &str) -> String {
        loop {
            let line = self.stderr.recv_timeout(LIMIT).expect(part);
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn stderr_so_far(&self) -> String {
        self.stderr.try_iter().collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } }));
    }

    /// What the running server knows.
    fn state(&mut self, id: u64) -> Value {
        self.call(id, "version");
        let answer = self.answer_to(&json!(id));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).expect("JSON")
    }

    pub(crate) fn shake_hands(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        self.send(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }));
        assert_eq!(self.next()["result"]["capabilities"]["tools"]["listChanged"], true);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Replaces the server, and waits until the client is told.
    fn replace(&self, version: &str) {
        write(&self.folder, version);
        self.next_where(|message| message["method"] == "notifications/resources/list_changed");
    }
}

/// Replaces the script as editors do.
fn write(folder: &Folder, version: &str) {
    let new = folder.0.join("server.py.new");
    fs::write(&new, SERVER.replace("VERSION", version)).expect("a file");
    fs::rename(&new, folder.0.join("server.py")).expect("a file");
}

#[test]
fn a_client_keeps_its_pipe_while_the_server_is_replaced_again_and_again() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    for (id, method, params) in [
        (1, "logging/setLevel", json!({ "level": "debug" })),
        (2, "resources/subscribe", json!({ "uri": "note://1" })),
    ] {
        dev.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        assert_eq!(dev.next(), json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
    for version in 2..=10_u64 {
        dev.replace(&version.to_string());
        let known = json!({
            "version": version.to_string(), "level": "debug", "initialized": true, "uris": ["note://1"],
        });
        assert_eq!(dev.state(100 + version), known);
    }
    drop(dev.stdin.take());
    assert!(dev.child.wait().expect("an end").success());
    assert!(dev.lines.recv_timeout(LIMIT).is_err(), "nothing follows");
}

#[test]
fn messages_of_both_eras_and_batches_pass_as_they_are() {
    let folder = Folder::new();
    let echo = "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line)\n    sys.stdout.flush()\n";
    fs::write(folder.0.join("server.py"), echo).expect("a file");
    let mut dev = Loop::start_in(folder, &["--", "python3", "server.py"]);
    // spaces, the order of members, and a number that a double cannot hold
    let line =
        r#"{"method":"x","id" : 12345678901234567890123,"params":{"_meta":{"z":1,"a":2}},"jsonrpc":"2.0"}"#;
    for line in [line, r#"[{"jsonrpc":"2.0", "method":"b"},{"jsonrpc":"2.0","method":"a"}]"#, "not JSON"] {
        let stdin = dev.stdin.as_mut().expect("an open pipe");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("a reader");
        assert_eq!(dev.line(), line);
    }
}

#[test]
fn calls_in_flight_get_an_error_that_says_why_alone_and_in_batches() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    dev.call(7, "hang");
    let call = |id: &str, name: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } });
    dev.send(&json!([call("a", "hang"), call("b", "hang"), call("c", "other")]));
    assert_eq!(dev.next()["id"], "c");
    write(&dev.folder, "2");
    let (mut single, mut batch) = (None, None);
    while single.is_none() || batch.is_none() {
        match dev.next() {
            Value::Array(answers) => batch = Some(answers),
            answer if answer["id"] == 7 => single = Some(answer),
            _ => {}
        }
    }
    let single = single.unwrap_or_default();
    assert_eq!(
        single["error"]["data"],
        json!({ "type": "mcp-dev", "reason": "restarted", "retryable": true })
    );
    assert!(
        single["error"]["message"].as_str().is_some_and(|text| text.contains("send it again")),
        "{single}"
    );
    let ids: Vec<Value> = batch.unwrap_or_default().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn questions_of_a_server_that_the_client_does_not_answer_are_bounded() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    dev.call(7, "flood");
    // the server tells its client of each refusal
    let (mut asked, mut refused) = (Vec::new(), 0);
    while refused < 6 {
        let message = dev.next();
        match message["method"].as_str() {
            Some("roots/list") => asked.push(message["id"].clone()),
            _ => refused += usize::from(message["params"]["data"].to_string().contains("too_many")),
        }
    }
    assert_eq!(asked.len(), 1024);
    // an answer makes room for another one
    dev.send(&json!({ "jsonrpc": "2.0", "id": asked[0], "result": { "roots": [] } }));
    dev.call(8, "ask");
    dev.next_where(|message| message["method"] == "elicitation/create");
}

#[test]
fn a_read_only_call_is_sent_again_where_the_author_wants_that() {
    let mut dev = Loop::start(&["--retry-safe"]);
    dev.shake_hands();
    dev.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    dev.answer_to(&json!(1));
    dev.call(7, "hang");
    // it has arrived when this is answered
    assert_eq!(dev.state(8)["version"], "1");
    write(&dev.folder, "2");
    assert_eq!(dev.answer_to(&json!(7))["result"]["content"][0]["text"], "from 2");
}

#[test]
fn a_listen_stream_goes_on_with_the_next_process() {
    let mut dev = Loop::start(&[]);
    let filter = json!({ "toolsListChanged": true });
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let params = json!({ "_meta": meta, "notifications": filter });
    dev.send(
        &json!({ "jsonrpc": "2.0", "id": "stream", "method": "subscriptions/listen", "params": params }),
    );
    assert_eq!(dev.next()["method"], "notifications/subscriptions/acknowledged");
    write(&dev.folder, "2");
    let told = dev.next();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "stream");
    // the second acknowledgement is not the client's
    dev.call(2, "version");
    assert_eq!(dev.next()["id"], 2);
}

#[test]
fn a_listen_stream_hears_of_changed_lists_from_a_server_that_never_tells_them() {
    let folder = Folder::new();
    let silent = SERVER.replace("\"notifications\": params[\"notifications\"]", "\"notifications\": {}");
    assert!(silent != SERVER);
    fs::write(folder.0.join("server.py"), silent.replace("VERSION", "1")).expect("a file");
    let mut dev = Loop::start_in(folder, &["--", "python3", "server.py"]);
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["note://1"] });
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let params = json!({ "_meta": meta, "notifications": filter });
    dev.send(
        &json!({ "jsonrpc": "2.0", "id": "stream", "method": "subscriptions/listen", "params": params }),
    );
    // what only the server could tell is not acknowledged for it
    assert_eq!(dev.next()["params"]["notifications"], json!({ "toolsListChanged": true }));
    write(&dev.folder, "2");
    assert_eq!(dev.next()["method"], "notifications/tools/list_changed");
}

#[test]
fn a_stream_of_events_goes_on_after_its_last_cursor() {
    let mut dev = Loop::start(&[]);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let params = json!({ "_meta": meta, "name": "changed", "cursor": null });
    dev.send(&json!({ "jsonrpc": "2.0", "id": "stream", "method": "events/stream", "params": params }));
    assert_eq!(dev.next()["params"]["cursor"], "1 after None");
    for (version, cursor) in [("2", "2 after 1 after None"), ("3", "3 after 2 after 1 after None")] {
        write(&dev.folder, version);
        let next = dev.next();
        assert_eq!(
            (&next["method"], &next["params"]["cursor"]),
            (&json!("notifications/events/active"), &json!(cursor))
        );
    }
}

#[test]
fn a_client_gets_list_changed_for_a_list_that_the_next_version_does_not_have() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    let without = SERVER.replace("\"resources\": {\"subscribe\": True}, ", "").replace("VERSION", "2");
    assert!(!without.contains("\"resources\""));
    let new = dev.folder.0.join("server.py.new");
    fs::write(&new, without).expect("a file");
    fs::rename(&new, dev.folder.0.join("server.py")).expect("a file");
    dev.next_where(|message| message["method"] == "notifications/resources/list_changed");
    assert_eq!(dev.state(5)["version"], "2");
}

#[test]
fn arguments_of_a_tool_are_masked_before_the_client_has_listed_it() {
    let mut dev = Loop::start(&["--no-page", "--log", "log"]);
    let log = dev.folder.0.join("log");
    let read = |part: &str| {
        let end = Instant::now() + LIMIT;
        loop {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if let Some(line) = text.lines().find(|line| line.contains(part)) {
                return line.to_owned();
            }
            assert!(Instant::now() < end, "{part}: {text}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    dev.shake_hands();
    // the loop has listed `hang`, and its listing does not reach the client
    assert_eq!(dev.state(1)["version"], "1");
    // what a call of an unknown tool has is masked in all that follows, until the tool is listed
    let call = |id: &str, name: &str, text: &str| {
        let arguments = json!({ "pin": "planted-pin", "text": text });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
    };
    dev.send(&call("unknown", "version", "black tea"));
    dev.answer_to(&json!("unknown"));
    dev.send(&call("known", "hang", "green tea"));
    assert_eq!(dev.state(2)["version"], "1");
    let unknown = read("\"id\":\"unknown\"");
    assert!(!unknown.contains("planted-pin") && !unknown.contains("black tea"), "{unknown}");
    let known = read("\"id\":\"known\"");
    assert!(!known.contains("planted-pin") && known.contains("green tea"), "{known}");
}

/// Its listing comes late, fails or never comes. A call is logged by the server, too, and says what came before it.
const SLOW_LISTING: &str = r#"
import json, sys, time

def send(value):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **value}) + "\n")
    sys.stdout.flush()

before = []
for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params", {}), message.get("id")
    before.append(method)
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": params["protocolVersion"],
              "serverInfo": {"name": "slow", "version": "1"}, "capabilities": {"tools": {}}}})
    elif method == "tools/list" and sys.argv[1] == "late":
        time.sleep(0.3)
        properties = {"pin": {"type": "string", "format": "password"}, "code": {"type": "integer", "writeOnly": True}}
        send({"id": id, "result": {"tools": [{"name": "pay", "inputSchema": {"type": "object", "properties": properties}}]}})
    elif method == "tools/list" and sys.argv[1] == "fails":
        send({"id": id, "error": {"code": -32603, "message": "no list"}})
    elif method == "tools/call":
        send({"method": "notifications/message", "params": {"level": "info", "data": json.dumps(params["arguments"])}})
        send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(before)}]}})
    elif method == "ping":
        send({"id": id, "result": {}})
"#;

/// The loop with the script above, whose log is `log`.
fn slow_listing(mode: &str, options: &[&str]) -> Loop {
    let folder = Folder::new();
    fs::write(folder.0.join("slow.py"), SLOW_LISTING).expect("a file");
    let server = ["--no-page", "--log", "log", "--", "python3", "slow.py", mode];
    Loop::start_in(folder, &[options, &server].concat())
}

/// Sends a call and a ping at once; returns what the server got before the call, and the log when the ping is in it.
fn first_call(dev: &mut Loop, meta: &Value) -> (Value, String) {
    let arguments = json!({ "pin": "planted-pin", "code": 918_273_645, "text": "green tea" });
    let params = json!({ "name": "pay", "arguments": arguments, "_meta": meta });
    dev.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    dev.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    assert!(dev.next()["params"]["data"].as_str().is_some_and(|text| text.contains("planted-pin")));
    let answer = dev.next();
    assert_eq!(answer["id"], 1, "{answer}");
    assert_eq!(dev.next()["id"], 2);
    let before = answer["result"]["content"][0]["text"].as_str().expect("a text");
    let end = Instant::now() + LIMIT;
    let log = loop {
        let text = fs::read_to_string(dev.folder.0.join("log")).unwrap_or_default();
        if text.lines().any(|line| line.contains("\"response\"") && line.contains("\"id\":2")) {
            break text;
        }
        assert!(Instant::now() < end, "{text}");
        thread::sleep(Duration::from_millis(20));
    };
    (serde_json::from_str(before).expect("JSON"), log)
}

#[test]
fn the_first_call_waits_until_the_loop_knows_what_to_mask_in_both_eras() {
    let modern = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    for (meta, before) in [
        (json!({}), json!(["initialize", "notifications/initialized", "tools/list", "tools/call"])),
        (modern, json!(["tools/list", "tools/call"])),
    ] {
        let mut dev = slow_listing("late", &[]);
        if meta == json!({}) {
            dev.shake_hands();
        }
        let (found, log) = first_call(&mut dev, &meta);
        assert_eq!(found, before);
        // what the schema marks is masked, also where the server repeats it, and the rest is not
        assert!(!log.contains("planted-pin"), "{log}");
        let asked = log.lines().find(|line| line.contains("\"tools/call\"")).expect("the call");
        assert!(asked.contains("green tea") && !asked.contains("918273645"), "{asked}");
        let repeated =
            log.lines().find(|line| line.contains("notifications/message")).expect("its repetition");
        assert!(repeated.contains("green tea"), "{repeated}");
    }
}

#[test]
fn a_call_goes_on_when_the_list_of_tools_fails_or_does_not_come_in_time() {
    for (mode, options) in
        [("fails", &[][..]), ("never", &["--list-wait", "1"]), ("never", &["--list-wait", "0"])]
    {
        let mut dev = slow_listing(mode, options);
        dev.shake_hands();
        let (before, log) = first_call(&mut dev, &json!({}));
        let listed = json!(["initialize", "notifications/initialized", "tools/list", "tools/call"]);
        assert_eq!(before, listed, "{mode} {options:?}");
        let asked = log.lines().find(|line| line.contains("\"tools/call\"")).expect("the call");
        assert!(!asked.contains("planted-pin") && !asked.contains("green tea"), "{asked}");
        assert_eq!(
            log.contains("has not listed its tools in time"),
            options == ["--list-wait", "1"],
            "{log}"
        );
    }
}

#[test]
fn an_answer_reaches_the_process_that_asked_and_no_other() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    dev.call(1, "ask");
    assert_eq!(dev.next()["params"]["message"], "1?");
    write(&dev.folder, "2");
    let withdrawn = dev.next_where(|message| message["method"] == "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], 1);
    dev.next_where(|message| message["method"] == "notifications/resources/list_changed");
    dev.call(2, "ask");
    let second = dev.next();
    assert_eq!(second["params"]["message"], "2?");
    assert_ne!(second["id"], 1, "the first one may still be answered");
    dev.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "late" } }));
    dev.send(&json!({ "jsonrpc": "2.0", "id": second["id"], "result": { "action": "accept" } }));
    let heard = dev.next();
    let text = heard["params"]["data"].as_str().and_then(|text| text.strip_prefix("2 got ")).expect("from 2");
    let answer: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "accept" } }));
}

#[test]
fn a_server_that_crashes_is_started_again_and_its_last_words_are_shown() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    dev.call(5, "crash");
    let answer = dev.answer_to(&json!(5));
    assert_eq!(answer["error"]["data"]["reason"], "crashed");
    assert!(
        answer["error"]["message"].as_str().is_some_and(|text| text.contains("the planted reason")),
        "{answer}"
    );
    dev.wait_for_stderr("started again in");
    assert_eq!(dev.state(6), json!({ "version": "1", "level": null, "initialized": true, "uris": [] }));
}

#[test]
fn the_last_words_of_a_server_that_crashes_reach_the_client_without_secrets() {
    let folder = Folder::new();
    let script = SERVER.replace("VERSION", "1").replace(
        "\"the planted reason",
        "\"starting with \" + os.environ[\"API_KEY\"] + \" for the planted reason",
    );
    fs::write(folder.0.join("server.py"), script).expect("a file");
    let words = ["--no-page", "--", "python3", "server.py"];
    let mut dev = Loop::start_with(folder, &words, &[("API_KEY", "hunter2")]);
    dev.shake_hands();
    dev.call(5, "crash");
    let answer = dev.answer_to(&json!(5));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("starting with ••• for the planted reason"), "{answer}");
    assert!(!message.contains("hunter2"), "{answer}");
}

#[test]
fn calls_to_a_server_that_does_not_start_are_answered_and_the_next_save_mends_it() {
    let mut dev = Loop::start(&[]);
    dev.shake_hands();
    let script = dev.folder.0.join("server.py");
    fs::write(&script, "raise SystemExit('the planted mistake')").expect("a file");
    let mut said = String::new();
    while said.matches("started again in").count() < 3 {
        said += &dev.stderr.recv_timeout(LIMIT).expect("a line");
    }
    // each process says it once, and the loop does not repeat it
    assert!(said.matches("the planted mistake").count() <= said.matches("has exited").count() + 1, "{said}");
    dev.call(5, "version");
    let answer = dev.answer_to(&json!(5));
    assert_eq!(answer["error"]["data"]["reason"], "not_running");
    assert!(
        answer["error"]["message"].as_str().is_some_and(|text| text.contains("the planted mistake")),
        "{answer}"
    );
    dev.replace("2");
    assert_eq!(dev.state(6)["version"], "2");
}

#[test]
fn a_crate_is_built_again_on_a_save_and_a_build_that_fails_leaves_the_server_running() {
    let folder = Folder::new();
    let built = Crate::new(&folder, "built", &program("1"));
    let mut dev = Loop::start_in(folder, &[]);
    let any = json!({ "jsonrpc": "2.0", "method": "x" });
    dev.send(&any);
    assert_eq!(dev.next()["params"]["version"], 1);
    built.save(Crate::MISTAKE);
    dev.wait_for_stderr("cannot find value `planted`");
    dev.wait_for_stderr("the server of before goes on");
    dev.send(&any);
    assert_eq!(dev.next()["params"]["version"], 1);
    built.save_version("2");
    dev.wait_for_stderr("built in");
    let end = Instant::now() + LIMIT;
    loop {
        // what is on its way to a process that is told to end may be lost
        dev.send(&any);
        let answer = dev.lines.recv_timeout(Duration::from_millis(200));
        if answer.is_ok_and(|line| line.contains("\"version\":2")) {
            break;
        }
        assert!(Instant::now() < end, "the next version never came: {}", dev.stderr_so_far());
    }
}

#[test]
fn the_log_has_what_passes_and_no_secret() {
    let folder = Folder::new();
    let script = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    def send(result):
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if message["method"] == "tools/list":
        properties = {"pin": {"type": "string", "format": "password"}, "key": {"type": "string", "writeOnly": True}}
        send({"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": properties}}]})
    else:
        send({"content": [{"type": "text", "text": line + os.environ["GIVEN"]}]})
"#;
    fs::write(folder.0.join("server.py"), script).expect("a file");
    let log = folder.0.join("log.jsonl");
    let words = [
        "--log",
        "log.jsonl",
        "--secret",
        "mine",
        "--env",
        "GIVEN=planted-env",
        "--",
        "python3",
        "server.py",
    ];
    let mut dev = Loop::start_in(folder, &words);
    dev.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert_eq!(dev.next()["id"], 1);
    let arguments = json!({
        "pin": "planted-pin", "key": "planted-key", "mine": ["planted-mine"], "authorization": "planted-header", "shown": "tea",
    });
    dev.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "t", "arguments": arguments } }));
    let answer = dev.next().to_string();
    assert!(
        answer.contains("planted-pin") && answer.contains("planted-env"),
        "the client gets all of it: {answer}"
    );
    let text = loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        if text.matches("\"to_client\"").count() == 2 && text.ends_with('\n') {
            break text;
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(text.contains("tea") && !text.contains("planted"), "{text}");
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(
        (&last["kind"], &last["bytes"].is_u64(), &last["ms"].is_f64()),
        (&json!("response"), &true, &true)
    );
}

#[test]
fn secrets_of_the_environment_are_not_in_the_log_as_they_are_or_escaped() {
    let folder = Folder::new();
    let script = r#"
import json, os, sys, urllib.parse
names = ["API_KEY", "DB_PASSWORD", "SVC_TOKEN", "DATABASE_URL", "GITHUB_PAT", "MAX_TOKENS"]
for line in sys.stdin:
    message = json.loads(line)
    def send(result):
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if message["method"] == "tools/list":
        send({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
    else:
        found = {name.lower() + ".was": os.environ[name] for name in names}
        url = "http://h/" + urllib.parse.quote(os.environ["SVC_TOKEN"], safe="")
        password = urllib.parse.urlsplit(os.environ["DATABASE_URL"]).password
        send({"content": [{"type": "text", "text": json.dumps([found, url, password, "tea"])}]})
"#;
    fs::write(folder.0.join("server.py"), script).expect("a file");
    let log = folder.0.join("log.jsonl");
    let variables = [
        ("API_KEY", "hunter2"),
        ("DB_PASSWORD", "pl\"anted\\quote-1"),
        ("SVC_TOKEN", "planted +/token"),
        ("DATABASE_URL", "postgres://u:planted2@h/x"),
        ("GITHUB_PAT", "plantd3"),
        ("MAX_TOKENS", "4096"),
    ];
    let words = ["--no-page", "--log", "log.jsonl", "--", "python3", "server.py"];
    let mut dev = Loop::start_with(folder, &words, &variables);
    dev.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert_eq!(dev.next()["id"], 1);
    let params = json!({ "name": "t", "arguments": {} });
    dev.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
    let answer = dev.answer_to(&json!(2));
    let answer = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    for part in ["hunter2", "pl\\\"anted\\\\quote-1", "planted%20%2B%2Ftoken", "planted2", "plantd3"] {
        assert!(answer.contains(part), "the client gets all of it: {part}: {answer}");
    }
    let end = Instant::now() + LIMIT;
    let text = loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        if text.contains("tea") && text.ends_with('\n') {
            break text;
        }
        assert!(Instant::now() < end, "{text}");
        thread::sleep(Duration::from_millis(10));
    };
    for part in ["hunter2", "anted", "plantd3"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    // a number of tokens is not secret, and the URL stays but for its password
    assert!(text.contains("4096") && text.contains("postgres://u:"), "{text}");
}
