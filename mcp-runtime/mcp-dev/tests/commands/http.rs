//! The loop for clients over HTTP: a server that is a small script, replaced while clients have sessions, streams and calls.

use std::{
    fs,
    future::IntoFuture,
    io::{BufRead as _, BufReader},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use mcp_runtime::client::{ChangeEvent, Client as RealClient};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    Folder,
    dev::{Crate, Loop},
    page::{Answer, read, send},
};

const LIMIT: Duration = Duration::from_secs(60);

/// A server of both eras at the port that is its argument. `VERSION` is replaced in each version of it.
const SERVER: &str = r#"
import json, os, queue, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSIONS = "VERSION"
sessions, streams, answers = {}, {}, []

class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *arguments): pass
    def give(self, status, value=None, session=None):
        body = b"" if value is None else json.dumps({"jsonrpc": "2.0", **value}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        session = session or self.session()
        if session: self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)
    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
    def event(self, value, id=None):
        text = "data: " + json.dumps({"jsonrpc": "2.0", **value}) + "\n\n"
        self.wfile.write((f"id: {id}\n" if id else "").encode() + text.encode())
        self.wfile.flush()
    def hang(self):
        while True:
            time.sleep(0.5)
            self.wfile.write(b":\n\n")
    def session(self):
        return self.headers.get("Mcp-Session-Id")
    def do_GET(self):
        if self.path == "/page": return self.give(200, {"page": VERSIONS, "port": int(sys.argv[1])})
        if self.session() not in sessions: return self.give(404)
        if "no-streams" in VERSIONS: return self.give(405)
        self.begin()
        self.event({"method": "hello", "params": {"version": VERSIONS}}, "first")
        self.hang()
    def do_DELETE(self):
        self.give(200 if sessions.pop(self.session(), None) else 404)
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if isinstance(message, list):
            answered = [{"jsonrpc": "2.0", "id": one["id"], "result": {"version": VERSIONS}} for one in message]
            if VERSIONS == "1": time.sleep(600)
            body = json.dumps(answered).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return self.wfile.write(body)
        method, params, id = message.get("method"), message.get("params", {}), message.get("id")
        if method == "initialize":
            session = f"planted-{VERSIONS}-{len(sessions)}"
            sessions[session] = {"version": VERSIONS, "level": None, "initialized": 0, "uris": [],
                                 "token": self.headers.get("Authorization"), "client": params["clientInfo"]["name"]}
            return self.give(200, {"id": id, "result": {"protocolVersion": params["protocolVersion"],
                "serverInfo": {"name": "script", "version": VERSIONS},
                "capabilities": {"tools": {}, "resources": {"subscribe": True}, "logging": {}}}}, session)
        modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
        if not modern and self.session() not in sessions: return self.give(404)
        state = sessions.get(self.session())
        if method is None:
            answers.append(message)
            return self.give(202)
        if method == "notifications/initialized": state["initialized"] += 1
        if id is None: return self.give(202)
        if method == "logging/setLevel": state["level"] = params["level"]
        if method == "resources/subscribe": state["uris"].append(params["uri"])
        if method == "subscriptions/listen":
            self.begin()
            meta = {"io.modelcontextprotocol/subscriptionId": id}
            self.event({"method": "notifications/subscriptions/acknowledged",
                        "params": {"_meta": meta, "notifications": params["notifications"]}})
            self.event({"method": "notifications/resources/updated", "params": {"_meta": meta, "uri": VERSIONS}})
            self.hang()
        if method == "tools/list":
            return self.give(200, {"id": id, "result": {"tools": [
                {"name": "hang", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}]}})
        if method == "tools/call":
            name = params["name"]
            if name == "crash":
                sys.stderr.write("the planted reason\n")
                sys.stderr.flush()
                os._exit(3)
            if name in ("hang", "begin", "ask") and VERSIONS == "1":
                if name == "hang": time.sleep(600)
                self.begin()
                if name == "ask":
                    self.event({"id": 1, "method": "elicitation/create", "params": {"message": "Which one?"}}, "asked")
                self.event({"method": "notifications/message", "params": {"level": "info", "data": "half"}}, "half")
                self.hang()
            text = json.dumps({**(state or {"version": VERSIONS}), "id": self.session(), "answers": answers})
            return self.give(200, {"id": id, "result": {"content": [{"type": "text", "text": text}]}})
        self.give(200, {"id": id, "result": {}})

if "broken" in VERSIONS:
    sys.exit("the planted failure")
if "slow" in VERSIONS:
    time.sleep(1)
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// Replaces the script as editors do.
fn write(folder: &Folder, version: &str) {
    let new = folder.0.join("server.py.new");
    fs::write(&new, SERVER.replace("VERSION\"", &format!("{version}\""))).expect("a file");
    fs::rename(&new, folder.0.join("server.py")).expect("a file");
}

struct Http {
    dev: Loop,
    port: u16,
}

impl Drop for Http {
    fn drop(&mut self) {
        self.dev.terminate();
    }
}

/// A session, or none.
#[derive(Clone, Copy)]
struct Client<'h> {
    port: u16,
    headers: &'h str,
}

/// The events of a stream.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(connection: BufReader<TcpStream>) -> Self {
        let mut own = Self(connection);
        let mut line = String::new();
        while own.0.read_line(&mut line).expect("a head") > 2 {
            line.clear();
        }
        own
    }

    /// The next event that is such a one: its id, and its message. Others are dropped.
    fn next_where(&mut self, is_it: impl Fn(&Value) -> bool) -> (Option<String>, Value) {
        let mut id = None;
        let since = Instant::now();
        loop {
            // comments keep the connection alive
            assert!(since.elapsed() < LIMIT, "the event never came");
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("an event") > 0, "the stream has ended");
            if let Some(own) = line.strip_prefix("id: ") {
                id = Some(own.trim().to_owned());
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let message: Value = serde_json::from_str(data).expect("JSON");
            if is_it(&message) {
                return (id, message);
            }
            id = None;
        }
    }

    fn next_of(&mut self, method: &str) -> Value {
        self.next_where(|message| message["method"] == method).1
    }
}

impl Http {
    /// With a version of the script.
    fn start(version: &str, options: &[&str]) -> Self {
        let folder = Folder::new();
        write(&folder, version);
        let words = ["--http", "0", "--no-page"].into_iter().chain(options.iter().copied());
        let words: Vec<&str> = words.chain(["--", "python3", "server.py", "{port}"]).collect();
        Self::of(Loop::start_in(folder, &words))
    }

    fn of(dev: Loop) -> Self {
        let line = dev.wait_for_stderr("the server for clients");
        let (_, after) = line.split_once("http://127.0.0.1:").expect("a URL");
        let port = after.strip_suffix("/mcp").and_then(|port| port.parse().ok()).expect("a port");
        Self { dev, port }
    }

    fn client<'h>(&self, headers: &'h str) -> Client<'h> {
        Client { port: self.port, headers }
    }

    fn replace(&self, version: &str) {
        write(&self.dev.folder, version);
    }

    /// Headers of a new session of a client with this name.
    fn shake_hands(&self, name: &str) -> String {
        let token = format!("\r\nAuthorization: Bearer {name}");
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } });
        let answer = self.client(&token).post(&request("hello", "initialize", &params));
        assert_eq!(answer.json()["result"]["capabilities"]["tools"]["listChanged"], true);
        let (_, id) = answer.1.split_once("mcp-session-id: ").expect("a session");
        let id = id.lines().next().expect("an id");
        assert!(!id.contains("planted"), "{id}");
        let headers = format!("{token}\r\nMcp-Session-Id: {id}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let Answer(status, head, _) = self.client(&headers).post(&initialized);
        assert!(status == 202 && head.contains(&format!("mcp-session-id: {id}")), "{status} {head}");
        headers
    }
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn call(id: u64, tool: &str) -> Value {
    request(id, "tools/call", &json!({ "name": tool }))
}

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    request(id, method, &params)
}

impl Client<'_> {
    fn send(self, message: &Value) -> BufReader<TcpStream> {
        let (port, headers) = (self.port, self.headers);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream{headers}"
        );
        send(port, &head, &message.to_string())
    }

    fn post(self, message: &Value) -> Answer {
        read(self.send(message))
    }

    fn other(self, method: &str, path: &str) -> BufReader<TcpStream> {
        let (port, headers) = (self.port, self.headers);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream{headers}"
        );
        send(port, &head, "")
    }

    fn listen(self) -> Stream {
        Stream::open(self.other("GET", "/mcp"))
    }

    /// What the running server knows of the session.
    fn state(self) -> Value {
        let answer = self.post(&call(9, "version"));
        assert!(!answer.1.contains("planted"), "{}", answer.1);
        let answer = answer.json();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).expect("JSON")
    }
}

#[test]
fn sessions_and_their_streams_go_on_while_the_server_is_replaced_again_and_again() {
    let http = Http::start("1", &[]);
    let sessions = ["ada", "bea"].map(|name| (name, http.shake_hands(name)));
    let mut streams = sessions.each_ref().map(|(name, headers)| {
        let client = http.client(headers);
        for (method, params) in [
            ("logging/setLevel", json!({ "level": "debug" })),
            ("resources/subscribe", json!({ "uri": name })),
        ] {
            assert_eq!(client.post(&request(1, method, &params)).json()["result"], json!({}));
        }
        client.listen()
    });
    for version in 2..=6 {
        let version = version.to_string();
        http.replace(&version);
        for ((name, headers), stream) in sessions.iter().zip(&mut streams) {
            stream.next_of("notifications/tools/list_changed");
            stream.next_of("notifications/resources/list_changed");
            let hello = stream.next_where(|message| message["method"] == "hello");
            assert_eq!(hello.1["params"]["version"], json!(version));
            let state = http.client(headers).state();
            let expected = json!({
                "version": version, "level": "debug", "initialized": 1, "uris": [name], "token": format!("Bearer {name}"),
                "client": name, "answers": [], "id": state["id"],
            });
            assert_eq!(state, expected);
            assert!(state["id"].as_str().is_some_and(|id| id.starts_with(&format!("planted-{version}-"))));
        }
    }
    // one ends, and the other one does not
    let (ended, other) = (http.client(&sessions[0].1), http.client(&sessions[1].1));
    assert_eq!(read(ended.other("DELETE", "/mcp")).0, 200);
    assert_eq!(ended.post(&call(1, "version")).0, 404);
    assert_eq!(other.state()["version"], "6");
}

#[test]
fn a_server_without_streams_for_sessions_is_replaced_and_its_clients_learn_of_changes() {
    let http = Http::start("1 no-streams", &[]);
    let headers = http.shake_hands("ada");
    let mut stream = http.client(&headers).listen();
    http.replace("2 no-streams");
    stream.next_of("notifications/tools/list_changed");
    assert_eq!(http.client(&headers).state()["version"], "2 no-streams");
    // a client that opens no stream until then learns it as well
    http.replace("3 no-streams");
    stream.next_of("notifications/tools/list_changed");
    drop(stream);
    http.replace("4 no-streams");
    // a call may be on its way to the process that ends
    while !http.client(&headers).post(&call(1, "version")).2.contains(r#"\"version\": \"4 no-streams\""#) {}
    http.client(&headers).listen().next_of("notifications/tools/list_changed");
}

#[test]
fn listen_streams_of_2026_07_28_go_on_and_tell_that_lists_may_have_changed() {
    let http = Http::start("1", &[]);
    let filter =
        json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["note://1"] } });
    let client = http.client("\r\nMCP-Protocol-Version: 2026-07-28");
    let mut stream = Stream::open(client.send(&modern(7, "subscriptions/listen", filter)));
    stream.next_of("notifications/subscriptions/acknowledged");
    for version in 1..=5 {
        let is_next = |message: &Value| {
            assert_ne!(message["method"], "notifications/subscriptions/acknowledged");
            message["method"] == "notifications/resources/updated"
        };
        if version > 1 {
            http.replace(&version.to_string());
            let changed = stream.next_of("notifications/tools/list_changed");
            assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
        }
        assert_eq!(stream.next_where(is_next).1["params"]["uri"], json!(version.to_string()));
        let answer = client.post(&modern(8, "tools/call", json!({ "name": "version" }))).json();
        assert!(answer.to_string().contains(&format!(r#"\"version\": \"{version}\""#)), "{answer}");
    }
}

#[test]
fn calls_in_flight_over_http_get_an_error_that_says_why_before_and_after_their_stream_has_begun() {
    let http = Http::start("1", &[]);
    let headers = http.shake_hands("ada");
    let client = http.client(&headers);
    let mut standalone = client.listen();
    standalone.next_of("hello");
    let whole = client.send(&call(1, "hang"));
    let batch = client.send(&json!([call(2, "hang"), request(3, "tools/list", &json!({}))]));
    let mut asking = Stream::open(client.send(&call(4, "ask")));
    assert_eq!(asking.next_of("elicitation/create")["id"], 1);
    let (id, _) = asking.next_where(|message| message["method"] == "notifications/message");
    assert!(id.is_some_and(|id| id.ends_with(".half")));
    http.replace("2");
    let expected =
        |id: u64| json!([id, -32603, { "type": "mcp-dev", "reason": "restarted", "retryable": true }]);
    let shown = |answer: &Value| json!([answer["id"], answer["error"]["code"], answer["error"]["data"]]);
    let Answer(status, _, body) = read(whole);
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, shown(&answer)), (200, expected(1)));
    assert_eq!(shown(&asking.next_where(|message| message["id"] == 4).1), expected(4));
    // a read is asked again, and a call is not
    let answers = read(batch).json();
    let of =
        |id: u64| answers.as_array().expect("a batch").iter().find(|one| one["id"] == id).expect("an answer");
    assert_eq!((of(3)["result"]["version"].clone(), shown(of(2))), (json!("2"), expected(2)));
    // what the process had asked is withdrawn, and the answer reaches no process
    assert_eq!(standalone.next_of("notifications/cancelled")["params"]["requestId"], 1);
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "decline" } });
    assert_eq!(client.post(&answer).0, 202);
    assert_eq!(client.state()["answers"], json!([]));
}

#[test]
fn calls_of_read_only_tools_over_http_are_sent_again_on_request() {
    let http = Http::start("1", &["--retry-safe"]);
    let headers = http.shake_hands("ada");
    let client = http.client(&headers);
    client.post(&request(1, "tools/list", &json!({})));
    let waiting = client.send(&call(2, "hang"));
    // the call is on its way before the server is replaced
    thread::sleep(Duration::from_millis(300));
    http.replace("2");
    assert!(read(waiting).json()["result"].to_string().contains(r#"\"version\": \"2\""#));
}

#[test]
fn requests_over_http_wait_for_a_server_that_starts_and_not_for_one_that_does_not() {
    let http = Http::start("1 slow", &[]);
    let headers = http.shake_hands("ada");
    http.replace("2 broken");
    http.dev.wait_for_stderr("the planted failure");
    http.dev.wait_for_stderr("the planted failure");
    http.dev.wait_for_stderr("the planted failure");
    http.dev.wait_for_stderr("it is started again in 400 ms");
    let answer = http.client(&headers).post(&call(1, "version")).json();
    assert_eq!(answer["error"]["data"]["reason"], "not_running", "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("the planted failure")));
    assert_eq!(read(http.client("").other("GET", "/page")).0, 502);
    http.replace("3");
    let mut stream = http.client(&headers).other("GET", "/mcp");
    while {
        let mut head = String::new();
        stream.read_line(&mut head).expect("a head");
        !head.contains("200")
    } {
        stream = http.client(&headers).other("GET", "/mcp");
    }
    assert_eq!(http.client(&headers).state()["version"], "3");
    assert_eq!(read(http.client("").other("GET", "/page")).json()["page"], "3");
}

#[test]
fn a_server_over_http_that_crashes_is_started_again_and_its_sessions_go_on() {
    let http = Http::start("1", &[]);
    let headers = http.shake_hands("ada");
    let client = http.client(&headers);
    let mut stream = client.listen();
    let answer = client.post(&call(1, "crash")).json();
    assert_eq!(answer["error"]["data"]["reason"], "crashed", "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("the planted reason")));
    stream.next_of("notifications/tools/list_changed");
    assert_eq!(client.state()["initialized"], 1);
}

#[cfg(unix)]
#[test]
fn a_server_over_http_ends_if_the_loop_is_killed() {
    let mut http = Http::start("1", &[]);
    let page = http.client("").other("GET", "/page");
    let port = u16::try_from(read(page).json()["port"].as_u64().expect("a port")).expect("a port");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    http.dev.kill();
    let end = Instant::now() + LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(Instant::now() < end, "the server goes on");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn requests_that_wait_and_sessions_are_bounded() {
    let http = Http::start("1 slow", &["--max-held", "0"]);
    let answer = http.client("").post(&modern(1, "tools/list", json!({}))).json();
    assert_eq!(answer["error"]["data"]["reason"], "too_many", "{answer}");
    let http = Http::start("1 broken", &["--hold", "0"]);
    let answer = http.client("").post(&request(1, "initialize", &json!({}))).json();
    assert_eq!(answer["error"]["data"]["reason"], "not_running", "{answer}");
    let http = Http::start("1", &["--max-sessions", "1"]);
    let (first, second) = (http.shake_hands("ada"), http.shake_hands("bea"));
    assert_eq!(http.client(&first).post(&call(1, "version")).0, 404);
    assert_eq!(http.client(&second).state()["client"], "bea");
}

/// What a client gets within the time.
async fn within<T, E: std::fmt::Debug>(future: impl IntoFuture<Output = Result<T, E>>) -> T {
    timeout(LIMIT, future.into_future()).await.expect("an answer in time").expect("an answer")
}

/// The text of a call of this tool.
async fn said(client: &RealClient, tool: &str) -> String {
    within(client.call(tool, json!({}))).await.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crate_is_built_again_under_a_client_over_http_which_keeps_its_session_and_notices_no_failed_build()
{
    let folder = Folder::new();
    let built = Crate::new(&folder, "built-http", Crate::MISTAKE);
    let log = folder.0.join("log.jsonl");
    let dev = Loop::start_in(folder, &["--http", "0", "--no-page", "--log", "log.jsonl"]);
    let http = Http::of(dev);
    // a request is answered with what the compiler says, and a client that connects waits for the program
    http.dev.wait_for_stderr("the build has failed");
    let refused = http.client("").post(&modern(1, "tools/list", json!({}))).json();
    assert_eq!(refused["error"]["data"]["reason"], "not_running", "{refused}");
    let text = refused["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("the build has failed") && text.contains("cannot find value `planted`"), "{text}");
    let (sender, mut changes) = mpsc::unbounded_channel();
    let builder = RealClient::builder().timeout(LIMIT).on_change(move |change| {
        let _ended = sender.send(change);
    });
    let connecting = tokio::spawn(builder.connect(format!("http://127.0.0.1:{}/mcp", http.port)));
    built.save_version("1");
    let client = within(async { connecting.await.expect("no panic") }).await;
    assert_eq!(said(&client, "tool_1").await, "from 1");
    // the next build fails
    built.save(Crate::MISTAKE);
    http.dev.wait_for_stderr("cannot find value `planted`");
    http.dev.wait_for_stderr("the server of before goes on");
    assert_eq!(said(&client, "tool_1").await, "from 1");
    assert!(changes.try_recv().is_err(), "a build that fails changes no list");
    built.save_version("2");
    while timeout(LIMIT, changes.recv()).await.expect("a change in time").expect("a change")
        != ChangeEvent::Tools
    {}
    let tools = within(client.tools()).await;
    assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["tool_2"]);
    assert_eq!(said(&client, "tool_2").await, "from 2");
    // the client has sent one handshake, so its session is the same
    let end = Instant::now() + LIMIT;
    let text = loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        if text.contains("from 2") {
            break text;
        }
        assert!(Instant::now() < end, "{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    assert_eq!(events.filter(|event| event["method"] == "initialize").count(), 1, "{text}");
    timeout(LIMIT, client.close()).await.expect("an end in time");
}

#[test]
fn options_of_a_server_over_http_that_say_nothing_are_refused() {
    let folder = Folder::new();
    for (arguments, message) in [
        (&["--http", "0", "--", "python3", "server.py"][..], "write `{port}` in its place"),
        (&["http://127.0.0.1:1/mcp", "--http", "0"], "`mcp-dev URL --listen PORT`"),
        (&["--hold", "3", "--", "b"], "--http"),
        (&["--max-held", "3", "--", "b"], "--http"),
        (&["--max-sessions", "3", "--", "b"], "--http"),
    ] {
        let output = folder.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(message), "{arguments:?}: {text}");
    }
}
