//! One client for every way into a server: in memory, over a pair of streams, over HTTP, in any revision. It answers
//! what functions ask as a host would. The matrix drives every feature through it.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use mcp_runtime::{
    Revision, Server,
    testing::{Changes, TestServer},
};
use serde_json::{Value, json};

use super::{Cell, Era, Way};
use crate::{
    http::{
        client::{Ask, Wire, messages, within},
        fixture::Served,
    },
    subscriptions::client::{Events, Pipe},
};

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

    /// The params of the messages of that method.
    pub(super) fn of(&self, method: &str) -> Vec<&Value> {
        self.seen.iter().filter(|m| m["method"] == method).map(|m| &m["params"]).collect()
    }
}

pub(super) struct Client {
    revision: Revision,
    capabilities: Value,
    answers: Answers,
    next: u64,
    /// What came for nobody's request, while another one was waited for.
    told: VecDeque<Value>,
    /// Who it says it is, over HTTP.
    user: Option<&'static str>,
    line: Line,
}

enum Line {
    Memory {
        server: Box<TestServer>,
        changes: Option<Changes>,
    },
    Stdio(Box<Pipe>),
    Http {
        at: SocketAddr,
        session: String,
        /// Of requests whose replies nobody waits for yet.
        open: Vec<Sent>,
        /// What it listens on.
        events: Option<Events>,
        _served: Served,
    },
}

/// A request over HTTP, and its reply as far as it has come.
struct Sent {
    events: Events,
    /// Whether the events of a stream are next.
    begun: bool,
}

impl Client {
    /// Connects, with a handshake where the era has one.
    pub(super) async fn connect(
        server: &Server,
        (way, era): Cell,
        capabilities: Value,
        answers: Answers,
    ) -> Self {
        let revision = match era {
            Era::Legacy => Revision::V2025_11_25,
            Era::Modern => Revision::LATEST,
        };
        Self::speaking(server, way, revision, capabilities, answers).await
    }

    /// The same in that revision.
    pub(super) async fn speaking(
        server: &Server,
        way: Way,
        revision: Revision,
        capabilities: Value,
        answers: Answers,
    ) -> Self {
        let line = match way {
            Way::Memory => {
                let client = TestServer::of(server);
                let client = if revision.is_modern() {
                    // rounds are counted here, so nobody answers there
                    client.answering(capabilities.clone(), |_, _| Err("later".to_owned()))
                } else {
                    let answer = move |method: &str, params: &Value| Ok(answers(method, params));
                    client.answering(capabilities.clone(), answer).legacy(revision)
                };
                Line::Memory { server: Box::new(client), changes: None }
            }
            Way::Stdio => Line::Stdio(Box::new(Pipe::open(server, 1 << 16))),
            Way::Http => {
                let served = Served::of(server.clone()).await;
                let (session, open) = (String::new(), Vec::new());
                Line::Http { at: served.at, session, open, events: None, _served: served }
            }
        };
        let (next, told) = (1, VecDeque::new());
        let mut client = Self { revision, capabilities, answers, next, told, user: None, line };
        if !revision.is_modern() {
            client.shake_hands().await;
        }
        client
    }

    /// From now on it says that it is somebody.
    pub(super) fn be(&mut self, user: &'static str) {
        self.user = Some(user);
    }

    async fn shake_hands(&mut self) {
        let params = json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": { "name": "matrix", "version": "1" },
        });
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        match &mut self.line {
            Line::Memory { .. } => return,
            Line::Stdio(pipe) => {
                pipe.send(&initialize).await;
                assert_eq!(pipe.message().await["result"]["protocolVersion"], self.revision.as_str());
            }
            Line::Http { at, session, .. } => {
                let reply = Ask::post(initialize.to_string()).send(*at).await;
                *session = reply.header("mcp-session-id").expect("a session").to_owned();
            }
        }
        self.notify("notifications/initialized", &json!({})).await;
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
            let (more, reply) = self.round(method, params.clone()).await;
            seen.extend(more);
            rounds += 1;
            if reply["resultType"] != "input_required" {
                return Exchange { seen, reply, rounds };
            }
            params["inputResponses"] = self.answers_to(&reply);
            params["requestState"] = reply["requestState"].clone();
        }
    }

    /// What it says to the questions of a reply.
    pub(super) fn answers_to(&self, reply: &Value) -> Value {
        let questions = reply["inputRequests"].as_object().expect("questions");
        let answer =
            |asked: &Value| (self.answers)(asked["method"].as_str().expect("a method"), &asked["params"]);
        questions.iter().map(|(key, asked)| (key.clone(), answer(asked))).collect()
    }

    /// Every entry of a list, and how many pages they took.
    pub(super) async fn list(&mut self, method: &str, member: &str) -> (Vec<Value>, usize) {
        let (mut entries, mut pages, mut params) = (Vec::new(), 0, json!({}));
        loop {
            let mut page = self.request(method, params).await.reply;
            pages += 1;
            match page[member].take() {
                Value::Array(found) => entries.extend(found),
                _ => panic!("{method} was refused: {page}"),
            }
            match page.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return (entries, pages),
            }
        }
    }

    /// Sends one request: what came before its reply, and its reply.
    pub(super) async fn round(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let mut seen = Vec::new();
        let reply = if let Line::Memory { server, .. } = &self.line {
            let reply = server.request(method, params).await;
            seen.extend_from_slice(reply.notifications());
            let error = |error: mcp_runtime::ProtocolError| {
                let mut object = json!({ "code": error.code, "message": error.message });
                if let Some(data) = error.data {
                    object["data"] = data;
                }
                json!({ "error": object })
            };
            return (seen, reply.error().map_or_else(|| reply.value().clone(), error));
        } else {
            let id = self.start(method, params).await;
            loop {
                let message = self.next_of_call().await;
                if message["id"] == id && message.get("method").is_none() {
                    break message;
                }
                if message.get("id").is_some() {
                    self.answer(&message).await;
                }
                if is_change(&message) {
                    self.told.push_back(message);
                } else {
                    seen.push(message);
                }
            }
        };
        if let Line::Http { open, .. } = &mut self.line {
            open.pop();
        }
        (seen, reply.get("result").cloned().unwrap_or_else(|| json!({ "error": reply["error"] })))
    }

    /// The next message, over HTTP of the request that was sent last.
    async fn next_of_call(&mut self) -> Value {
        match &mut self.line {
            Line::Memory { .. } => panic!("in memory a request and its reply are one call"),
            Line::Stdio(pipe) => pipe.message().await,
            Line::Http { open, .. } => {
                let sent = open.last_mut().expect("a request");
                within(sent.next()).await.expect("the stream ended without a reply")
            }
        }
    }

    /// Answers a question.
    async fn answer(&mut self, question: &Value) {
        let method = question["method"].as_str().expect("a method");
        let result = (self.answers)(method, &question["params"]);
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        self.send(&answer).await;
    }

    /// Sends a message that has no reply.
    async fn send(&mut self, message: &Value) {
        match &mut self.line {
            Line::Memory { .. } => panic!("there is nobody to tell in memory"),
            Line::Stdio(pipe) => pipe.send(message).await,
            Line::Http { at, session, .. } => {
                let sent = Ask::post(message.to_string()).header("Mcp-Session-Id", session).send(*at).await;
                assert_eq!(sent.status, 202, "{}", sent.text());
            }
        }
    }

    /// Sends a request without waiting for its reply, and gives its id.
    pub(super) async fn start(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.declare(&mut params);
        match &mut self.line {
            Line::Memory { .. } => panic!("in memory a request and its reply are one call"),
            Line::Stdio(pipe) => pipe.request(id, method, params).await,
            Line::Http { at, session, open, .. } => {
                let ask = if self.revision.is_modern() {
                    Ask::modern(id, method, params)
                } else {
                    Ask::legacy(session, id, method, &params)
                };
                let ask = self.user.iter().fold(ask, |ask, user| ask.header("x-user", user));
                open.push(Sent::of(&ask, *at).await);
            }
        }
        id
    }

    /// What every request of the stateless era says.
    fn declare(&self, params: &mut Value) {
        if self.revision.is_modern() {
            let meta = params.as_object_mut().expect("params").entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = self.revision.as_str().into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
    }

    /// Sends a notification that belongs to the session.
    pub(super) async fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Listens to what the filter wants, as the era does, and gives what the server will tell of.
    pub(super) async fn listen(&mut self, filter: Value) -> Value {
        if let Line::Memory { server, changes } = &mut self.line {
            let listening = server.listen(filter).await;
            let acknowledged = listening.acknowledged().clone();
            *changes = Some(listening);
            return acknowledged;
        }
        if self.revision.is_modern() {
            self.start("subscriptions/listen", json!({ "notifications": filter })).await;
            if let Line::Http { open, events, .. } = &mut self.line {
                let mut stream = open.pop().expect("a request").events;
                assert_eq!(stream.wire.head().await.header("content-type"), Some("text/event-stream"));
                *events = Some(stream);
            }
            let first = self.told().await;
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
            return first["params"]["notifications"].clone();
        }
        // a session is told of lists by itself, as soon as it goes on after the handshake
        self.request("ping", json!({})).await;
        if let Line::Http { at, session, events, .. } = &mut self.line {
            let get = Ask::other("GET").header("Accept", "text/event-stream");
            *events = Some(Events::open(get.header("Mcp-Session-Id", session), *at).await.expect("a stream"));
        }
        for uri in filter["resourceSubscriptions"].as_array().into_iter().flatten() {
            let reply = self.request("resources/subscribe", json!({ "uri": uri })).await.reply;
            assert_eq!(reply, json!({}));
        }
        filter
    }

    /// The next message that no request has asked for.
    pub(super) async fn told(&mut self) -> Value {
        if let Some(message) = self.told.pop_front() {
            return message;
        }
        match &mut self.line {
            Line::Memory { changes, .. } => changes.as_mut().expect("it listens").next().await,
            Line::Stdio(pipe) => pipe.message().await,
            Line::Http { events, .. } => {
                within(events.as_mut().expect("it listens").next()).await.expect("the stream has ended")
            }
        }
    }

    /// Goes away, as far as the server can see: its input ends, its connections close.
    pub(super) async fn hang_up(&mut self) {
        match &mut self.line {
            Line::Memory { .. } => panic!("in memory a request is dropped"),
            Line::Stdio(pipe) => pipe.close().await,
            Line::Http { open, .. } => open.clear(),
        }
    }

    /// What still comes after that, until the connection ends.
    pub(super) async fn rest(mut self) -> Vec<Value> {
        let Line::Stdio(pipe) = &mut self.line else { panic!("its connections are closed") };
        let mut rest = Vec::new();
        while let Some(message) = pipe.next().await {
            rest.push(message);
        }
        rest
    }
}

impl Sent {
    async fn of(ask: &Ask, at: SocketAddr) -> Self {
        let mut wire = Wire::open(at).await;
        wire.write(&ask.bytes()).await;
        Self { events: Events::of(wire), begun: false }
    }

    /// The next message; nothing at the end of a stream.
    async fn next(&mut self) -> Option<Value> {
        if !self.begun {
            let head = self.events.wire.head().await;
            // what was done at once comes as a whole
            if let Some(length) = head.header("content-length").and_then(|length| length.parse().ok()) {
                let body = self.events.wire.take(length).await;
                if head.header("content-type") == Some("application/json") {
                    return Some(serde_json::from_slice(&body).expect("JSON"));
                }
                self.events.waiting.extend(messages(std::str::from_utf8(&body).expect("UTF-8")));
            }
            self.begun = true;
        }
        self.events.next().await
    }
}

/// Whether a message belongs to a subscription.
fn is_change(message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    ["/list_changed", "resources/updated", "notifications/tasks"].iter().any(|end| method.ends_with(end))
}

/// Whether something becomes true before long.
pub(super) async fn soon(mut what: impl FnMut() -> bool) -> bool {
    for _ in 0..4000 {
        if what() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}
