//! One client for every way into a server: in memory, over a pair of streams, over HTTP, in either era. It answers
//! what functions ask as a host would. The matrix drives every feature through it.

use std::{net::SocketAddr, time::Duration};

use mcp_runtime::{Revision, Server, testing::TestServer};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use crate::http::client::{Ask, Wire, messages};

/// Nothing here takes nearly as long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Memory,
    Stdio,
    Http,
}

/// Every combination.
pub(super) fn all() -> impl Iterator<Item = (Way, Era)> {
    let ways = [Way::Memory, Way::Stdio, Way::Http];
    ways.into_iter().flat_map(|way| [(way, Era::Legacy), (way, Era::Modern)])
}

/// What the client says to a question: method and params in, the result out.
pub(super) type Answers = fn(&str, &Value) -> Value;

/// What came back for one request.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Notifications and questions, in the order in which they came, without the reply.
    pub(super) seen: Vec<Value>,
    /// Its `result`, or its `error` under that key.
    pub(super) reply: Value,
    /// Requests that it took.
    pub(super) rounds: usize,
}

impl Exchange {
    /// The text of the first block of a tool's result.
    #[track_caller]
    pub(super) fn text(&self) -> &str {
        self.reply["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {}", self.reply))
    }

    pub(super) fn of(&self, method: &str) -> Vec<&Value> {
        self.seen.iter().filter(|m| m["method"] == method).map(|m| &m["params"]).collect()
    }
}

pub(super) struct Client {
    era: Era,
    capabilities: Value,
    answers: Answers,
    next: u64,
    line: Line,
}

enum Line {
    Memory(Box<TestServer>),
    Stdio {
        lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
        output: WriteHalf<DuplexStream>,
        _served: Served,
    },
    Http {
        address: SocketAddr,
        session: String,
        open: Vec<Wire>,
        _served: Served,
        _stop: oneshot::Sender<()>,
    },
}

/// Ends with the client.
struct Served(JoinHandle<()>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    /// Connects, with a handshake where the era has one.
    pub(super) async fn connect(
        server: &Server,
        (way, era): (Way, Era),
        capabilities: Value,
        answers: Answers,
    ) -> Self {
        let line = match way {
            Way::Memory => {
                let answer = move |method: &str, params: &Value| Ok(answers(method, params));
                let client = TestServer::of(server);
                // in the stateless era the rounds are counted here
                Line::Memory(Box::new(match era {
                    Era::Legacy => {
                        client.answering(capabilities.clone(), answer).legacy(Revision::V2025_11_25)
                    }
                    Era::Modern => client,
                }))
            }
            Way::Stdio => {
                let (ours, theirs) = duplex(1 << 16);
                let (reader, writer) = split(theirs);
                let server = server.clone();
                let served = tokio::spawn(async move { server.serve(reader, writer).await.expect("serve") });
                let (input, output) = split(ours);
                Line::Stdio { lines: BufReader::new(input).lines(), output, _served: Served(served) }
            }
            Way::Http => {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
                let address = listener.local_addr().expect("an address");
                let (stop, stopped) = oneshot::channel();
                let server = server.clone();
                let served = tokio::spawn(async move {
                    let until = async move {
                        let _dropped = stopped.await;
                    };
                    server.serve_http_until(listener, until).await.expect("serve");
                });
                Line::Http {
                    address,
                    session: String::new(),
                    open: Vec::new(),
                    _served: Served(served),
                    _stop: stop,
                }
            }
        };
        let mut client = Self { era, capabilities, answers, next: 1, line };
        if era == Era::Legacy && way != Way::Memory {
            client.shake_hands().await;
        }
        client
    }

    async fn shake_hands(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": { "name": "matrix", "version": "1" },
        });
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} });
        match &mut self.line {
            Line::Memory(_) => {}
            Line::Stdio { lines, output, .. } => {
                output.write_all(format!("{initialize}\n{initialized}\n").as_bytes()).await.expect("write");
                assert_eq!(next_line(lines).await["id"], 0);
            }
            Line::Http { address, session, .. } => {
                let reply = Ask::post(initialize.to_string()).send(*address).await;
                *session = reply.header("mcp-session-id").expect("a session").to_owned();
                let done = Ask::post(initialized.to_string()).header("Mcp-Session-Id", session);
                assert_eq!(done.send(*address).await.status, 202);
            }
        }
    }

    /// Calls a tool.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Exchange {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a request and sees it through, however often it must be repeated.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Exchange {
        let mut params = params;
        let (mut seen, mut rounds) = (Vec::new(), 0);
        loop {
            let (more, reply) = timeout(PATIENCE, self.round(method, &params)).await.expect("no reply came");
            seen.extend(more);
            rounds += 1;
            let Some(questions) = reply.get("inputRequests").and_then(Value::as_object) else {
                return Exchange { seen, reply, rounds };
            };
            let answer = |question: &Value| {
                (self.answers)(question["method"].as_str().expect("a method"), &question["params"])
            };
            params["inputResponses"] = questions.iter().map(|(key, q)| (key.clone(), answer(q))).collect();
            params["requestState"] = reply["requestState"].clone();
        }
    }

    async fn round(&mut self, method: &str, params: &Value) -> (Vec<Value>, Value) {
        let id = self.next;
        self.next += 1;
        let mut params = params.clone();
        if self.era == Era::Modern {
            self.declare(&mut params);
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answers = self.answers;
        let answered = |question: &Value| {
            let result = answers(question["method"].as_str().expect("a method"), &question["params"]);
            json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
        };
        let (mut seen, reply) = match &mut self.line {
            Line::Memory(server) => {
                let reply = server.request(method, params).await;
                let seen = reply.notifications().to_vec();
                let error = reply
                    .error()
                    .map(|e| json!({ "error": { "code": e.code, "message": e.message, "data": e.data } }));
                return (seen, error.unwrap_or_else(|| reply.value().clone()));
            }
            Line::Stdio { lines, output, .. } => {
                output.write_all(format!("{message}\n").as_bytes()).await.expect("write");
                let mut seen = Vec::new();
                loop {
                    let line = next_line(lines).await;
                    if line["id"] == id && line.get("method").is_none() {
                        break (seen, line);
                    }
                    if line.get("id").is_some() {
                        output.write_all(format!("{}\n", answered(&line)).as_bytes()).await.expect("write");
                    }
                    seen.push(line);
                }
            }
            Line::Http { address, session, .. } => {
                let ask = match self.era {
                    Era::Legacy => Ask::legacy(session, id, method, &params),
                    Era::Modern => modern(&message, method, &params),
                };
                let mut wire = Wire::open(*address).await;
                wire.write(&ask.bytes()).await;
                let head = wire.head().await;
                if head.header("content-type") == Some("application/json") {
                    let length =
                        head.header("content-length").and_then(|l| l.parse().ok()).expect("a length");
                    let reply = serde_json::from_slice(&wire.take(length).await).expect("JSON");
                    (Vec::new(), reply)
                } else {
                    let mut seen = Vec::new();
                    let mut text = String::new();
                    'stream: loop {
                        let chunk = wire.chunk().await.expect("the stream ended without a reply");
                        text.push_str(&String::from_utf8(chunk).expect("UTF-8"));
                        while let Some(at) = text.find("\n\n") {
                            let event: String = text.drain(..at + 2).collect();
                            for message in messages(&event) {
                                if message["id"] == id && message.get("method").is_none() {
                                    seen.push(message);
                                    break 'stream;
                                }
                                if message.get("id").is_some() {
                                    let answer = Ask::post(answered(&message).to_string());
                                    let answer =
                                        answer.header("Mcp-Session-Id", session).send(*address).await;
                                    assert_eq!(answer.status, 202, "{}", answer.text());
                                }
                                seen.push(message);
                            }
                        }
                    }
                    let reply = seen.pop().expect("the reply");
                    (seen, reply)
                }
            }
        };
        seen.retain(|message| !message.is_null());
        let result = reply.get("result").cloned();
        (seen, result.unwrap_or_else(|| json!({ "error": reply["error"] })))
    }

    /// Sends a request without waiting for its reply, and gives its id.
    pub(super) async fn start(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut params = params;
        if self.era == Era::Modern {
            self.declare(&mut params);
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        match &mut self.line {
            Line::Memory(_) => panic!("in memory a request and its reply are one call"),
            Line::Stdio { output, .. } => {
                output.write_all(format!("{message}\n").as_bytes()).await.expect("write");
            }
            Line::Http { address, session, open, .. } => {
                let ask = match self.era {
                    Era::Legacy => Ask::legacy(session, id, method, &params),
                    Era::Modern => modern(&message, method, &params),
                };
                let mut wire = Wire::open(*address).await;
                wire.write(&ask.bytes()).await;
                open.push(wire);
            }
        }
        id
    }

    /// What every request of the stateless era says.
    fn declare(&self, params: &mut Value) {
        let meta = params.as_object_mut().expect("params").entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
    }

    /// Sends a notification that belongs to the session.
    pub(super) async fn notify(&mut self, method: &str, params: &Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        match &mut self.line {
            Line::Memory(_) => panic!("there is nobody to notify in memory"),
            Line::Stdio { output, .. } => {
                output.write_all(format!("{message}\n").as_bytes()).await.expect("write");
            }
            Line::Http { address, session, .. } => {
                let ask = Ask::post(message.to_string()).header("Mcp-Session-Id", session);
                assert_eq!(ask.send(*address).await.status, 202);
            }
        }
    }
}

/// A request of 2026-07-28 with its mirrored headers; unlike [`Ask::modern`] it keeps the capabilities.
fn modern(message: &Value, method: &str, params: &Value) -> Ask {
    let ask = Ask::post(message.to_string())
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    let name = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str());
    match name {
        Some(name) => ask.header("Mcp-Name", name),
        None => ask,
    }
}

async fn next_line(lines: &mut Lines<BufReader<ReadHalf<DuplexStream>>>) -> Value {
    let line = timeout(PATIENCE, lines.next_line()).await.expect("no line came").expect("read");
    serde_json::from_str(&line.expect("the connection ended")).expect("JSON")
}

/// Whether something becomes true before long.
pub(super) async fn soon(mut what: impl FnMut() -> bool) -> bool {
    for _ in 0..1000 {
        if what() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}
