//! The author's page over HTTP, without a browser: who gets in, what is shown, what is masked, and what the page can do with a
//! server that is a small script.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{dev::Loop, home::Folder};

const LIMIT: Duration = Duration::from_secs(600);

/// A server that asks, reports progress, and echoes.
const SERVER: &str = r#"
import json, os, sys

def send(value):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **value}) + "\n")
    sys.stdout.flush()

secret = {"type": "string", "format": "password"}
waiting = None
for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "script", "version": "VERSION"},
              "capabilities": {"tools": {}, "resources": {}}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [
            {"name": "echo", "description": "DESCRIPTION", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}, "pin": secret}}},
            {"name": "ask", "inputSchema": {"type": "object"}},
            {"name": "fail", "inputSchema": {"type": "object"}}]}})
    elif method == "resources/list":
        send({"id": id, "result": {"resources": []}})
    elif method == "resources/templates/list":
        send({"id": id, "result": {"resourceTemplates": []}})
    elif method == "resources/read":
        send({"id": id, "result": {"contents": [{"uri": params["uri"], "text": "a note"}]}})
    elif method == "tools/call" and params["name"] == "echo":
        sys.stderr.write("said " + os.environ["GIVEN"] + "\n")
        sys.stderr.flush()
        token = params.get("_meta", {}).get("progressToken")
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"}})
        text = json.dumps(params["arguments"]) + os.environ["GIVEN"]
        send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
    elif method == "tools/call" and params["name"] == "ask":
        waiting = id
        send({"id": "q", "method": "elicitation/create", "params": {"message": "Which one?", "requestedSchema": {
            "type": "object", "properties": {"which": {"type": "string"}}}}})
    elif method == "tasks/cancel":
        send({"id": id, "result": {"process": os.getpid(), "task": params["taskId"]}})
    elif method == "tools/call":
        send({"id": id, "error": {"code": -32001, "message": "the planted reason"}})
    elif method is None and id == "q":
        send({"id": waiting, "result": {"content": [{"type": "text", "text": json.dumps(message["result"])}]}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "unknown method"}})
"#;

struct Page {
    dev: Loop,
    port: u16,
    key: String,
}

/// Status, headers in lower case, and body.
struct Answer(u16, String, String);

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.2).unwrap_or_else(|error| panic!("{error}: {} {}", self.0, self.2))
    }
}

/// Sends a request as it is, and returns the connection.
fn send(port: u16, head: &str, body: &str) -> BufReader<TcpStream> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    connection.set_read_timeout(Some(LIMIT)).expect("a time");
    write!(connection, "{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .expect("a reader");
    BufReader::new(connection)
}

fn read(mut connection: BufReader<TcpStream>) -> Answer {
    let mut text = String::new();
    connection.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer(status, head.to_lowercase(), body.to_owned())
}

/// The link on stderr: port and fragment.
fn link_of(dev: &Loop) -> (u16, String) {
    let line = dev.wait_for_stderr("http://127.0.0.1:");
    let (_, link) = line.split_once("http://127.0.0.1:").expect("a link");
    let (port, fragment) = link.split_once("/#").expect("a fragment");
    (port.parse().expect("a port"), fragment.trim().to_owned())
}

impl Page {
    fn open(options: &[&str]) -> Self {
        let folder = Folder::new();
        write(&folder, "1", "Says it again.");
        let words: Vec<&str> = options
            .iter()
            .copied()
            .chain(["--env", "GIVEN=planted-env", "--", "python3", "server.py"])
            .collect();
        Self::open_of(Loop::start_in(folder, &words))
    }

    fn open_of(dev: Loop) -> Self {
        let (port, link) = link_of(&dev);
        let mut page = Self { dev, port, key: String::new() };
        page.key = page.enter(&link).json()["key"].as_str().expect("a key").to_owned();
        page
    }

    fn enter(&self, link: &str) -> Answer {
        self.post("/api/key", &json!({ "link": link }))
    }

    fn head(&self, method: &str, path: &str) -> String {
        let (port, key) = (self.port, &self.key);
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}")
    }

    fn get(&self, path: &str) -> Answer {
        read(send(self.port, &self.head("GET", path), ""))
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        read(send(self.port, &self.head("POST", path), &body.to_string()))
    }

    fn request(&self, method: &str, params: &Value) -> Value {
        self.post("/api/request", &json!({ "id": "r", "method": method, "params": params })).json()
    }

    /// About a task of a client.
    fn events(&self) -> Events {
        let mut connection = send(self.port, &self.head("GET", "/api/events"), "");
        let mut line = String::new();
        while connection.read_line(&mut line).expect("a head") > 2 {
            line.clear();
        }
        Events { connection, seen: String::new() }
    }
}

/// The stream of events.
struct Events {
    connection: BufReader<TcpStream>,
    /// All of it so far.
    seen: String,
}

impl Events {
    fn next_where(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.connection.read_line(&mut line).expect("a line") > 0, "the end: {}", self.seen);
            self.seen.push_str(&line);
            // besides events there are the sizes of chunks
            if let Ok(event) = serde_json::from_str::<Value>(&line)
                && event.is_object()
                && is_it(&event)
            {
                return event;
            }
        }
    }
}

/// The files of the page: path, head and body. Each is named by one before it.
fn files(port: u16) -> Vec<(String, String, String)> {
    let mut files: Vec<(String, String, String)> = Vec::new();
    let mut paths = vec!["/".to_owned()];
    while let Some(path) = paths.pop() {
        if files.iter().any(|(known, ..)| *known == path) {
            continue;
        }
        let Answer(status, head, body) =
            read(send(port, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}"), ""));
        assert_eq!(status, 200, "{path}");
        for (before, prefix) in
            [("src=\"/", "/"), ("href=\"/", "/"), ("from \"./", "/"), ("import \"./", "/")]
        {
            let named = body.split(before).skip(1).filter_map(|rest| rest.split_once('"'));
            paths.extend(named.map(|(name, _)| format!("{prefix}{name}")));
        }
        files.push((path, head, body));
    }
    files
}

#[test]
fn the_page_has_less_than_80_kilobytes() {
    let page = Page::open(&[]);
    let files = files(page.port);
    let names: Vec<&str> = files.iter().map(|(path, ..)| path.as_str()).collect();
    for name in ["/", "/page.css", "/page.js", "/form.js", "/tasks.js"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let size: usize = files.iter().map(|(_, _, body)| body.len()).sum();
    assert!(size < 80_000, "{size} bytes");
}

#[test]
fn a_task_is_cancelled_by_the_process_that_runs_it_and_its_client_sees_nothing_of_that() {
    let mut page = Page::open(&[]);
    page.dev.shake_hands();
    let cancel = |session: &str| {
        let params = json!({ "taskId": "t" });
        page.post("/api/request", &json!({ "session": session, "method": "tasks/cancel", "params": params }))
            .json()
    };
    let (of_client, of_page) = (cancel("client"), cancel("page"));
    assert_eq!((&of_client["result"]["task"], &of_page["result"]["task"]), (&json!("t"), &json!("t")));
    assert!(of_client["ms"].is_f64(), "{of_client}");
    assert_ne!(of_client["result"]["process"], of_page["result"]["process"]);
    let mut events = page.events();
    let sent = events.next_where(|event| event["session"] == "client" && event["method"] == "tasks/cancel");
    let id = sent["id"].clone();
    assert!(id.as_str().is_some_and(|id| id.starts_with("mcp-dev:client:")), "{sent}");
    let answered = events.next_where(|event| event["session"] == "client" && event["id"] == id);
    assert_eq!(answered["message"]["result"]["task"], "t", "{answered}");
    page.dev.call(5, "fail");
    let mut next = page.dev.next();
    while next["id"] != 5 {
        assert_ne!(next["id"], id, "the client gets its response");
        next = page.dev.next();
    }
    // a session whose process is gone has no tasks
    fs::write(page.dev.folder.0.join("server.py"), "raise SystemExit('the planted mistake')")
        .expect("a file");
    events.next_where(|event| event["session"] == "client" && event["state"] == "failed");
    let gone = page.post(
        "/api/request",
        &json!({ "session": "client", "method": "tasks/cancel", "params": { "taskId": "t" } }),
    );
    assert!(gone.0 == 502 && gone.2.contains("does not run"), "{} {}", gone.0, gone.2);
}

/// Replaces the server as editors do.
fn write(folder: &Folder, version: &str, description: &str) {
    let new = folder.0.join("server.py.new");
    let text = SERVER.replace("VERSION", version).replace("DESCRIPTION", description);
    fs::write(&new, text).expect("a file");
    fs::rename(&new, folder.0.join("server.py")).expect("a file");
}

#[test]
fn the_page_is_for_the_browser_with_the_link_and_for_no_other_page_or_host() {
    let page = Page::open(&[]);
    let port = page.port;
    let own = format!("127.0.0.1:{port}");
    for (path, head, body) in files(port) {
        for part in
            ["content-security-policy: default-src 'none';", "frame-ancestors 'none'", "nosniff", "no-store"]
        {
            assert!(head.contains(part), "{path}: {part}: {head}");
        }
        assert!(!body.contains("http://") && !body.contains("https://"), "{path} names another place");
    }
    let (known, key) = (page.head("GET", "/api/server"), &page.key);
    let with = |header: &str| format!("{known}\r\n{header}");
    let request = |host: &str, key: &str| {
        format!("GET /api/server HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}")
    };
    for (head, expected) in [
        (known.clone(), 200),
        (request(&format!("localhost:{port}"), key), 200),
        (with(&format!("Origin: http://{own}")), 200),
        (with("Sec-Fetch-Site: same-origin"), 200),
        (request("example.com", key), 403),
        (request("127.0.0.1", key), 403),
        (request(&format!("127.0.0.1:{port}.example.com"), key), 403),
        (with(&format!("Host: {own}")), 403),
        (with("Origin: http://example.com"), 403),
        (with("Origin: null"), 403),
        (with(&format!("Origin: https://{own}")), 403),
        (with("Sec-Fetch-Site: cross-site"), 403),
        (with("Sec-Fetch-Site: same-site"), 403),
        (request(&own, ""), 401),
        (request(&own, &key.replace(|_: char| true, "0")), 401),
        (request(&own, &key[..key.len() - 1]), 401),
        (format!("GET /api/server HTTP/1.1\r\nHost: {own}"), 401),
        (format!("GET /api/nothing HTTP/1.1\r\nHost: {own}"), 401),
        (page.head("GET", "/api/nothing"), 404),
        (page.head("GET", "/api/request"), 405),
        (page.head("POST", "/"), 405),
    ] {
        let Answer(status, head_of_answer, body) = read(send(port, &head, ""));
        assert_eq!(status, expected, "{head}: {body}");
        assert!(!head_of_answer.contains("access-control"), "{head_of_answer}");
    }
}

#[test]
fn connections_that_say_nothing_do_not_keep_the_author_out() {
    let page = Page::open(&[]);
    let mut events = page.events();
    let silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", page.port)).expect("a connection")).collect();
    assert_eq!(page.get("/api/server").0, 200);
    // they are still open, but for the oldest: the author has not waited for their end
    let newest = silent.last().expect("a connection");
    newest.set_nonblocking(true).expect("a mode");
    let waits = std::io::Read::read(&mut &*newest, &mut [0]).map_err(|error| error.kind());
    assert_eq!(waits, Err(std::io::ErrorKind::WouldBlock));
    let oldest = &silent[0];
    oldest.set_read_timeout(Some(LIMIT)).expect("a time");
    assert_eq!(std::io::Read::read(&mut &*oldest, &mut [0]).expect("its end"), 0);
    // and a connection of the author goes on
    page.request("resources/read", &json!({ "uri": "x" }));
    events.next_where(|event| event["method"] == "resources/read");
}

#[test]
fn a_link_is_good_for_one_tab_and_the_next_one_is_printed() {
    let page = Page::open(&[]);
    let (_, next) = link_of(&page.dev);
    assert_eq!(page.enter(&page.key).0, 401, "a key is not a link");
    assert_eq!(page.enter("").0, 401);
    let second = page.enter(&next).json()["key"].as_str().expect("a key").to_owned();
    assert_ne!(second, page.key);
    assert_eq!(page.enter(&next).0, 401, "it was used");
    assert_eq!(page.get("/api/server").0, 200, "the first tab goes on");
}

#[test]
fn the_page_says_what_the_doctor_says_of_the_server_itself() {
    let folder = Folder::new();
    write(&folder, "1", "Says it again.");
    let script = folder.0.join("server.py");
    let mut text = fs::read_to_string(&script).expect("the script");
    for (old, new) in [
        ("\"resources\": {}}", "\"resources\": {}, \"prompts\": {}}"),
        ("\nwaiting = None", "\nwaiting = None\nprint('listening as planted-env', flush=True)"),
    ] {
        let changed = text.replacen(old, new, 1);
        assert_ne!(changed, text);
        text = changed;
    }
    fs::write(&script, text).expect("a file");
    let words = ["--env", "GIVEN=1", "--env", "API_KEY=planted-env", "--", "python3", "server.py"];
    let page = Page::open_of(Loop::start_in(folder, &words));
    let described = page.get("/api/server").json();
    let findings = described["doctor"]["findings"].as_array().expect("findings");
    let of_server: Vec<&Value> = findings.iter().filter(|finding| finding["item"] == "server").collect();
    let said = |at: usize, severity: &str, part: &str| {
        assert_eq!(of_server[at]["severity"], severity, "{described}");
        assert!(of_server[at]["text"].as_str().is_some_and(|text| text.contains(part)), "{described}");
    };
    said(0, "error", "writes lines to stdout that are not messages (1, the first is `listening as •••`)");
    said(1, "warning", "has no `prompts/list`");
}

#[test]
fn the_page_lists_calls_and_answers_the_server_in_a_session_of_its_own() {
    let mut page = Page::open(&[]);
    page.dev.shake_hands();
    let described = page.get("/api/server").json();
    assert_eq!(described["server"]["server"], json!({ "name": "script", "version": "1" }));
    assert_eq!(described["server"]["tools"][0]["name"], "echo");
    assert_eq!(described["command"], json!(["python3", "server.py"]));
    assert!(described["doctor"]["tokens"]["total"].as_u64().is_some_and(|total| total > 10), "{described}");
    let mut events = page.events();
    let answer = page.request("tools/call", &json!({ "name": "echo", "arguments": { "text": "tea" } }));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with(r#"{"text": "tea"}"#) && answer["ms"].is_f64(), "{answer}");
    let progress = events.next_where(|event| event["event"] == "progress");
    assert_eq!((&progress["request"], &progress["total"]), (&json!("r"), &json!(2.0)));
    let failed = page.request("tools/call", &json!({ "name": "fail", "arguments": {} }));
    assert_eq!(failed["error"]["code"], -32001, "{failed}");
    let note = page.request("resources/read", &json!({ "uri": "note://1" }));
    assert_eq!(note["result"]["contents"][0]["text"], "a note", "{note}");
    assert_eq!(page.post("/api/request", &json!({ "method": "initialize" })).0, 502);
    assert_eq!(page.post("/api/answer", &json!({ "question": 7, "answer": {} })).0, 410);
    // a question is shown, and answered by another request
    let asking = send(
        page.port,
        &page.head("POST", "/api/request"),
        r#"{"method":"tools/call","params":{"name":"ask","arguments":{}}}"#,
    );
    let question = events.next_where(|event| event["event"] == "question");
    assert_eq!((&question["kind"], &question["message"]), (&json!("form"), &json!("Which one?")));
    let answer = json!({ "action": "accept", "content": { "which": "both" } });
    assert_eq!(
        page.post("/api/answer", &json!({ "question": question["question"], "answer": answer })).0,
        200
    );
    assert!(read(asking).2.contains("both"));
    // the client has got nothing of it
    page.dev.call(5, "echo");
    assert_eq!(page.dev.answer_to(&json!(5))["id"], 5);
}

#[test]
fn messages_of_both_directions_restarts_and_changes_arrive_and_no_secret_does() {
    let mut page = Page::open(&["--secret", "mine"]);
    page.dev.shake_hands();
    let mut events = page.events();
    assert_eq!(events.next_where(|_| true), json!({ "event": "hello", "masks": true }));
    let up = events.next_where(|event| event["method"] == "initialize");
    assert_eq!((&up["session"], &up["direction"]), (&json!("client"), &json!("to_server")));
    let down = events.next_where(|event| event["kind"] == "response");
    assert_eq!((&down["direction"], &down["id"]), (&json!("to_client"), &json!("hello")));
    assert!(down["ms"].is_f64() && down["bytes"].is_u64(), "{down}");
    page.get("/api/server");
    let arguments = json!({ "text": "tea", "pin": "planted-pin", "mine": "planted-mine", "authorization": "planted-header" });
    let answer = page.request("tools/call", &json!({ "name": "echo", "arguments": arguments })).to_string();
    assert!(answer.contains("tea") && !answer.contains("planted"), "{answer}");
    events.next_where(|event| event["event"] == "stderr");
    write(&page.dev.folder, "2", "Says it once more.");
    events.next_where(|event| event["event"] == "server" && event["state"] == "stopped");
    events.next_where(|event| event["event"] == "server" && event["state"] == "started");
    // the session of the page is made anew with the new program
    assert_eq!(page.get("/api/server").json()["server"]["server"]["version"], "2");
    let changes = events.next_where(|event| event["event"] == "changes");
    assert!(
        changes["text"].as_str().is_some_and(|text| text.contains("tool echo: its description has changed")),
        "{changes}"
    );
    assert!(events.seen.contains("said •••") && !events.seen.contains("planted"), "{}", events.seen);
}

#[test]
fn the_command_of_the_server_is_shown_without_the_secrets_in_it() {
    let folder = Folder::new();
    write(&folder, "1", "Says it again.");
    let command = [
        "--env",
        "GIVEN=planted-env",
        "--",
        "python3",
        "server.py",
        "--token",
        "planted-token",
        "--api-key=planted-key",
        "--port",
        "80",
    ];
    let page = Page::open_of(Loop::start_in(folder, &command));
    let described = page.get("/api/server");
    assert!(!described.2.contains("planted"), "{}", described.2);
    let words = ["python3", "server.py", "--token", "•••", "--api-key=•••", "--port", "80"];
    assert_eq!(described.json()["command"], json!(words));
    assert_eq!(described.json()["env"], json!(["GIVEN=•••"]));
}

#[test]
fn values_are_shown_where_the_author_wants_that() {
    let page = Page::open(&["--values"]);
    let answer =
        page.request("tools/call", &json!({ "name": "echo", "arguments": { "pin": "planted-pin" } }));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("planted-pin") && text.contains("planted-env"), "{answer}");
    assert_eq!(page.get("/api/server").json()["env"], json!(["GIVEN=planted-env"]));
}

#[test]
fn the_page_shows_why_the_server_does_not_run_and_limits_what_it_takes() {
    let page = Page::open(&[]);
    fs::write(page.dev.folder.0.join("server.py"), "raise SystemExit('the planted mistake')")
        .expect("a file");
    let mut events = page.events();
    let failed = events.next_where(|event| event["event"] == "server" && event["state"] == "failed");
    assert!(failed["text"].as_str().is_some_and(|text| text.contains("the planted mistake")), "{failed}");
    // a body that is too long is not read to its end
    let head = format!("{}\r\nContent-Length: {}\r\n\r\n", page.head("POST", "/api/request"), 5 << 20);
    let mut connection = TcpStream::connect(("127.0.0.1", page.port)).expect("a connection");
    connection.set_read_timeout(Some(LIMIT)).expect("a time");
    connection.write_all(head.as_bytes()).expect("a reader");
    let _closed = connection.write_all(&vec![b' '; 4 << 20]).and_then(|()| connection.write_all(b"  "));
    let mut status = [0; 12];
    connection.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 413");
    // streams are counted
    let _streams: Vec<Events> = (0..7).map(|_| page.events()).collect();
    assert_eq!(page.get("/api/events").0, 429);
}

#[test]
fn the_page_is_left_out_where_the_author_wants_that() {
    let folder = Folder::new();
    write(&folder, "1", "Says it again.");
    let mut dev = Loop::start_in(folder, &["--no-page", "--", "python3", "server.py"]);
    dev.shake_hands();
    assert!(!dev.stderr_so_far().contains("http"));
}
