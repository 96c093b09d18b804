//! The loop in front of a server that runs elsewhere, over HTTP: what passes, what is recorded, and who is refused.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    Folder,
    dev::Loop,
    page::{Answer, Page, read, send},
};

/// A server with sessions: calls are answered by a stream, and everything else by JSON. It echoes the headers that it gets.
const SERVER: &str = r#"
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *arguments): pass
    def give(self, status, kind, body, session=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if session: self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)
    def session(self): return self.headers.get("Mcp-Session-Id")
    def do_GET(self): self.give(405, "text/plain", self.path.encode())
    def do_DELETE(self): self.give(200, "text/plain", b"")
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        id, method = message.get("id"), message.get("method")
        def line(value): return json.dumps({"jsonrpc": "2.0", **value}).encode()
        if id is None: return self.give(202, "text/plain", b"")
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "elsewhere", "version": "1"}, "capabilities": {"tools": {}}}
            return self.give(200, "application/json", line({"id": id, "result": result}), "planted-session")
        allowed = self.headers.get("Authorization") == "Bearer planted-token" and self.session() == "planted-session"
        if method == "tools/list" and "never" in sys.argv:
            return time.sleep(600)
        if method.startswith("tasks/"):
            if not allowed: return self.give(401, "text/plain", b"")
            result = {"taskId": message["params"]["taskId"], "status": "cancelled", "of": method}
            return self.give(200, "application/json", line({"id": id, "result": result}))
        if method == "tools/call" and message["params"]["name"] == "long":
            return self.give(200, "application/json", line({"id": id, "result": {"task": {"taskId": "t1", "status": "working"}}}))
        if method == "tools/list":
            self.server.lists.append((self.headers.get("Authorization"), self.session()))
            pin = {"type": "string", "format": "password"}
            tools = [{"name": "echo", "inputSchema": {"type": "object", "properties": {"pin": pin}}}]
            return self.give(200, "application/json", line({"id": id, "result": {"tools": tools}}))
        if method == "tools/call":
            note = line({"method": "notifications/message", "params": {"level": "info", "data": "half"}})
            text = json.dumps([self.server.lists, {name.lower(): value for name, value in self.headers.items()}, self.path, message["params"]["arguments"]])
            last = line({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
            return self.give(200, "text/event-stream", b"id: 1\ndata: " + note + b"\n\ndata: " + last + b"\r\n\r\n")
        self.give(200, "application/json", line({"id": id, "error": {"code": -32601, "message": "unknown method"}}))

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads, server.lists = True, []
print(server.server_port, flush=True)
server.serve_forever()
"#;

struct Elsewhere {
    child: Child,
    port: u16,
}

impl Elsewhere {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let mut command = Command::new("python3");
        let mut child = command
            .args(["-c", SERVER])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        Self { child, port: line.trim().parse().expect("a port") }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The port for clients, and the page.
fn open(options: &[&str], port: u16) -> (u16, Page) {
    let url = format!("http://127.0.0.1:{port}/mcp?key=1");
    let words: Vec<&str> = std::iter::once(&*url).chain(options.iter().copied()).collect();
    let dev = Loop::start_in(Folder::new(), &words);
    let line = dev.wait_for_stderr("the server for clients");
    let (_, after) = line.split_once("http://127.0.0.1:").expect("a URL");
    let port = after.split('/').next().and_then(|port| port.parse().ok()).expect("a port");
    (port, Page::open_of(dev))
}

fn post(port: u16, headers: &str, message: &Value) -> Answer {
    let head =
        format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json{headers}");
    read(send(port, &head, &message.to_string()))
}

fn call(id: u64, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "echo", "arguments": arguments } })
}

#[test]
fn what_passes_over_http_is_recorded_in_both_directions_by_session_and_without_secrets() {
    let elsewhere = Elsewhere::start();
    let (port, page) = open(&[], elsewhere.port);
    let mut events = page.events();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let Answer(status, head, body) = post(port, "", &hello);
    assert_eq!(status, 200);
    assert!(head.contains("mcp-session-id: planted-session") && body.contains("elsewhere"), "{head} {body}");
    let session = "\r\nMcp-Session-Id: planted-session\r\nAuthorization: Bearer planted-token";
    assert_eq!(
        post(port, session, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).0,
        202
    );
    post(port, session, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let Answer(_, head, body) =
        post(port, session, &call(3, &json!({ "pin": "planted-pin", "text": "tea" })));
    // the stream is as it was, and the server got what the client has sent
    assert!(
        head.contains("content-type: text/event-stream") && body.contains("id: 1\ndata: {"),
        "{head} {body}"
    );
    for part in [
        "planted-token",
        "planted-session",
        "planted-pin",
        "/mcp?key=1",
        &format!("127.0.0.1:{}", elsewhere.port),
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let first = events.next_where(|event| event["kind"] == "response");
    assert_eq!((&first["session"], &first["id"]), (&json!("client"), &json!(1)));
    let asked = events.next_where(|event| event["method"] == "tools/call");
    assert_eq!((&asked["session"], &asked["direction"]), (&json!("client 1"), &json!("to_server")));
    assert_eq!(asked["message"]["params"]["arguments"], json!({ "pin": "•••", "text": "tea" }));
    let note = events.next_where(|event| event["method"] == "notifications/message");
    assert_eq!(note["direction"], "to_client");
    let last = events.next_where(|event| event["kind"] == "response" && event["id"] == 3);
    assert!(last["ms"].is_f64(), "{last}");
    for secret in ["planted-token", "planted-pin"] {
        assert!(!events.seen.contains(secret), "{secret}: {}", events.seen);
    }
    // the page is a client like the others
    let described = page.get("/api/server").json();
    assert_eq!(described["server"]["server"]["name"], "elsewhere", "{described}");
    let answer = page.request("tools/call", &json!({ "name": "echo", "arguments": { "text": "milk" } }));
    assert!(answer["result"].to_string().contains("milk"), "{answer}");
    assert!(!answer.to_string().contains("mcp-dev-session"), "{answer}");
    events.next_where(|event| event["session"] == "page" && event["method"] == "tools/call");
}

#[test]
fn the_first_call_over_http_waits_until_the_tools_are_listed_in_its_session() {
    let elsewhere = Elsewhere::start();
    let (port, page) = open(&[], elsewhere.port);
    let mut events = page.events();
    let session = "\r\nMcp-Session-Id: planted-session\r\nAuthorization: Bearer planted-token";
    for id in [1, 2] {
        let answer = post(port, session, &call(id, &json!({ "pin": "planted-pin", "text": "tea" })));
        let lists = r#"[[[\"Bearer planted-token\", \"planted-session\"]], {"#;
        assert!(answer.2.contains(lists), "{}", answer.2);
        let asked = events.next_where(|event| event["method"] == "tools/call");
        assert_eq!(asked["message"]["params"]["arguments"], json!({ "pin": "•••", "text": "tea" }));
    }
    // a list that never comes stops no call
    let elsewhere = Elsewhere::start_with(&["never"]);
    let (port, page) = open(&["--list-wait", "1"], elsewhere.port);
    let mut events = page.events();
    assert!(post(port, session, &call(1, &json!({ "text": "tea" }))).2.contains("tea"));
    events.next_where(|event| event["event"] == "note");
    let asked = events.next_where(|event| event["method"] == "tools/call");
    assert_eq!(asked["message"]["params"]["arguments"], json!({ "text": "•••" }));
}

#[test]
fn a_task_of_a_client_over_http_is_cancelled_with_the_headers_of_that_client() {
    let elsewhere = Elsewhere::start();
    let (port, page) = open(&[], elsewhere.port);
    let params = json!({ "taskId": "t1" });
    assert_eq!(page.request_in("client", "tasks/cancel", &params).0, 502);
    let session = "\r\nMcp-Session-Id: planted-session\r\nAuthorization: Bearer planted-token";
    let begun = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "long", "arguments": {} } });
    let mut events = page.events();
    assert!(post(port, session, &begun).2.contains("working"));
    // the answer is recorded once it has passed
    events.next_where(|event| event["kind"] == "response" && event["id"] == 1);
    let answer = page.request_in("client", "tasks/cancel", &params).json();
    assert_eq!(
        answer["result"],
        json!({ "taskId": "t1", "status": "cancelled", "of": "tasks/cancel" }),
        "{answer}"
    );
    let sent = events.next_where(|event| event["method"] == "tasks/cancel");
    assert!(sent["id"].as_str().is_some_and(|id| id.starts_with("mcp-dev:")), "{sent}");
    // the session of the page is another one
    let refused = page.request_in("page", "tasks/cancel", &params).json();
    assert!(refused["error"].is_object(), "{refused}");
}

#[test]
fn pages_and_hosts_from_elsewhere_are_refused_and_those_of_this_machine_are_not() {
    let elsewhere = Elsewhere::start();
    let (port, _page) = open(&[], elsewhere.port);
    for (headers, expected) in [
        (format!("Host: 127.0.0.1:{port}"), 405),
        (format!("Host: localhost:{port}\r\nOrigin: http://localhost:6274"), 405),
        (format!("Host: 127.0.0.1:{port}\r\nOrigin: https://example.com"), 403),
        (format!("Host: 127.0.0.1:{port}\r\nOrigin: null"), 403),
        (format!("Host: 127.0.0.1:{port}\r\nOrigin: http://localhost.example.com"), 403),
        ("Host: example.com".to_owned(), 403),
        (format!("Host: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}"), 403),
    ] {
        let Answer(status, _, body) = read(send(port, &format!("GET /other?a=b HTTP/1.1\r\n{headers}"), ""));
        assert_eq!(status, expected, "{headers}: {body}");
        assert!(status == 403 || body == "/other?a=b", "{body}");
    }
}

#[test]
fn a_server_elsewhere_that_cannot_be_reached_is_an_error_with_the_id_of_the_request() {
    let elsewhere = Elsewhere::start();
    let (port, _page) = open(&[], elsewhere.port);
    drop(elsewhere);
    let Answer(status, _, body) = post(port, "", &call(7, &json!({})));
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (status, &answer["id"], &answer["error"]["data"]["reason"]),
        (502, &json!(7), &json!("not_running"))
    );
}

#[test]
fn options_of_a_server_of_ones_own_are_refused_for_one_that_runs_elsewhere() {
    let folder = Folder::new();
    for (arguments, message) in [
        (&["https://planted/mcp"][..], "not of the scheme http"),
        (&["dev", "http://ada:planted@127.0.0.1/mcp"], "has a password"),
        (&["http://127.0.0.1:1/mcp", "--bin", "x"], "is neither built nor started"),
        (&["http://127.0.0.1:1/mcp", "--", "b"], "are two servers"),
        (&["--listen", "5000", "--", "b"], "`--listen` is for a server that runs elsewhere"),
    ] {
        let output = folder.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(message) && !text.contains("planted"), "{arguments:?}: {text}");
    }
}
