//! One client for every transport and revision, so that a test is written once for all of them. It answers the server's
//! requests as a host does, in the way that the revision defines.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use mcp_runtime::{
    Principal, Revision, Server,
    testing::{Changes, TestServer},
};
use serde_json::{Value, json};

use super::{
    EventStream, HttpConnection, HttpRequest, HttpServer, LineConnection, SUBSCRIPTION, initialize,
    notification, within,
};

/// How a client reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Without a transport.
    Memory,
    /// Over a pair of byte streams, as over stdio.
    Stdio,
    /// Over HTTP, on the loopback interface.
    Http,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Stdio, Self::Http];
}

/// The client's result for a request of the server, from its method and params.
pub type Answers = fn(&str, &Value) -> Value;

/// Answers of a client that must get no request.
///
/// # Panics
///
/// If it gets one.
pub fn no_requests(method: &str, params: &Value) -> Value {
    panic!("unexpected request `{method}` {params}")
}

/// The messages of one request.
#[derive(Debug)]
pub struct Exchange {
    /// Notifications and requests of the server, in the order in which they arrived, without the response.
    pub seen: Vec<Value>,
    /// Its `result`, or its `error` under that key.
    pub reply: Value,
    /// How often the request was sent.
    pub round_trips: usize,
}

impl Exchange {
    /// The text of the first block of a tool's result.
    #[track_caller]
    pub fn text(&self) -> &str {
        self.reply["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {}", self.reply))
    }

    /// The params of the messages with that method.
    pub fn of(&self, method: &str) -> Vec<&Value> {
        self.seen.iter().filter(|m| m["method"] == method).map(|m| &m["params"]).collect()
    }
}

/// A client, connected to its own server or to a shared one.
pub struct Client {
    revision: Revision,
    capabilities: Value,
    answers: Answers,
    next_id: u64,
    /// The id of the listen stream, which its messages must carry.
    subscription: Value,
    /// Messages that belong to no request, received while waiting for a response.
    changes: VecDeque<Value>,
    /// Sent with every request over HTTP.
    headers: Vec<(&'static str, String)>,
    connection: Connection,
}

enum Connection {
    Memory {
        server: Box<TestServer>,
        changes: Option<Changes>,
    },
    Stdio(Box<LineConnection>),
    Http {
        address: SocketAddr,
        session: String,
        /// Requests whose responses have not been read yet.
        pending: Vec<Pending>,
        /// The listen stream, or the standalone stream of the session.
        events: Option<EventStream>,
        _server: HttpServer,
    },
}

impl Client {
    /// Connects, with a handshake if the revision has one.
    pub async fn connect(
        server: &Server,
        transport: Transport,
        revision: Revision,
        capabilities: Value,
        answers: Answers,
    ) -> Self {
        let connection = match transport {
            Transport::Memory => {
                let client = TestServer::of(server);
                let client = if revision.is_modern() {
                    // round_trip trips are counted here, so the inner client answers none
                    client.answering(capabilities.clone(), |_, _| Err("later".to_owned()))
                } else {
                    let answer = move |method: &str, params: &Value| Ok(answers(method, params));
                    client.answering(capabilities.clone(), answer).legacy(revision)
                };
                Connection::Memory { server: Box::new(client), changes: None }
            }
            Transport::Stdio => Connection::Stdio(Box::new(LineConnection::serve(server, 1 << 16))),
            Transport::Http => {
                let server = HttpServer::of(server).await;
                let (session, pending) = (String::new(), Vec::new());
                Connection::Http { address: server.address, session, pending, events: None, _server: server }
            }
        };
        let (subscription, changes, headers) = (Value::Null, VecDeque::new(), Vec::new());
        let mut client =
            Self { revision, capabilities, answers, next_id: 1, subscription, changes, headers, connection };
        if !revision.is_modern() {
            client.shake_hands().await;
        }
        client
    }

    /// Sends every later request as this principal of the issuer `test`: over HTTP by the header `X-User`, which the server's
    /// `caller` reads. Over stdio the host is the only caller.
    #[must_use]
    pub fn calling_as(mut self, subject: &str) -> Self {
        self.connection = match self.connection {
            Connection::Memory { server, changes } => {
                let server = Box::new(server.caller(Principal::new("test", subject)));
                Connection::Memory { server, changes }
            }
            Connection::Stdio(_) => panic!("the host of a process has no other callers"),
            http @ Connection::Http { .. } => http,
        };
        self.set_header("X-User", subject);
        self
    }

    /// Sends that header with every later request, over HTTP.
    pub fn set_header(&mut self, name: &'static str, value: &str) {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
    }

    async fn shake_hands(&mut self) {
        let version = self.revision.as_str();
        match &mut self.connection {
            Connection::Memory { .. } => return,
            Connection::Stdio(lines) => {
                let reply = lines.reply_to(&initialize(0, version, &self.capabilities)).await;
                assert_eq!(reply["result"]["protocolVersion"], version, "{reply}");
            }
            Connection::Http { address, session, .. } => {
                let reply = HttpRequest::initialize_with(version, &self.capabilities).send(*address).await;
                assert_eq!(reply.json()["result"]["protocolVersion"], version);
                *session = reply.session();
            }
        }
        self.notify("notifications/initialized", json!({})).await;
    }

    /// Calls a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Exchange {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a request until it has a result, for as long as its input is required.
    pub async fn request(&mut self, method: &str, mut params: Value) -> Exchange {
        let (mut seen, mut round_trips) = (Vec::new(), 0);
        loop {
            let (more, reply) = self.round_trip(method, params.clone()).await;
            seen.extend(more);
            round_trips += 1;
            if reply["resultType"] != "input_required" {
                return Exchange { seen, reply, round_trips };
            }
            params["inputResponses"] = self.answers_to(&reply);
            params["requestState"] = reply["requestState"].clone();
        }
    }

    /// The responses to the `inputRequests` of a result.
    pub fn answers_to(&self, reply: &Value) -> Value {
        let requests = reply["inputRequests"].as_object().expect("requests");
        let answer =
            |asked: &Value| (self.answers)(asked["method"].as_str().expect("a method"), &asked["params"]);
        requests.iter().map(|(key, asked)| (key.clone(), answer(asked))).collect()
    }

    /// Every entry of a list, and the number of its pages.
    pub async fn list(&mut self, method: &str, member: &str) -> (Vec<Value>, usize) {
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

    /// Sends one request, and returns the messages before its response, and its response.
    pub async fn round_trip(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let mut seen = Vec::new();
        let reply = if let Connection::Memory { server, .. } = &self.connection {
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
                let message = self.next_of_request().await;
                if message["id"] == id && message.get("method").is_none() {
                    break message;
                }
                if message.get("id").is_some() {
                    self.answer(&message).await;
                }
                if is_change(&message) {
                    self.changes.push_back(message);
                } else {
                    seen.push(message);
                }
            }
        };
        if let Connection::Http { pending, .. } = &mut self.connection {
            pending.pop();
        }
        (seen, reply.get("result").cloned().unwrap_or_else(|| json!({ "error": reply["error"] })))
    }

    /// Sends one request, and returns only its response.
    pub async fn reply(&mut self, method: &str, params: Value) -> Value {
        self.round_trip(method, params).await.1
    }

    /// Calls a tool that must become a task, and returns the task's id.
    pub async fn start_task(&mut self, tool: &str, arguments: Value) -> String {
        let reply = self.reply("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!((&reply["resultType"], &reply["status"]), (&json!("task"), &json!("working")), "{reply}");
        reply["taskId"].as_str().expect("an id").to_owned()
    }

    /// The state of a task, which must exist.
    pub async fn task(&mut self, id: &str) -> Value {
        let task = self.reply("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["resultType"], "complete", "{task}");
        task
    }

    /// The task, once the condition holds.
    pub async fn until_task(&mut self, id: &str, mut so: impl FnMut(&Value) -> bool) -> Value {
        let start = tokio::time::Instant::now();
        loop {
            let task = self.task(id).await;
            if so(&task) {
                return task;
            }
            assert!(start.elapsed() < super::PATIENCE, "it never comes to that: {task}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The task, once it has that status.
    pub async fn until_status(&mut self, id: &str, status: &str) -> Value {
        self.until_task(id, |task| task["status"] == status).await
    }

    /// Responds to the input requests of a task, by key.
    pub async fn update_task(&mut self, id: &str, responses: Value) {
        let params = json!({ "taskId": id, "inputResponses": responses });
        acknowledged(&self.reply("tasks/update", params).await);
    }

    /// Cancels a task.
    pub async fn cancel_task(&mut self, id: &str) {
        acknowledged(&self.reply("tasks/cancel", json!({ "taskId": id })).await);
    }

    /// The next message; over HTTP that of the latest request.
    async fn next_of_request(&mut self) -> Value {
        match &mut self.connection {
            Connection::Memory { .. } => panic!("in memory a request and its reply are one call"),
            Connection::Stdio(lines) => lines.message().await,
            Connection::Http { pending, .. } => {
                let last = pending.last_mut().expect("a request");
                within(last.next()).await.expect("the stream ended without a reply")
            }
        }
    }

    /// Answers a request of the server.
    async fn answer(&mut self, asked: &Value) {
        let method = asked["method"].as_str().expect("a method");
        let result = (self.answers)(method, &asked["params"]);
        self.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
    }

    /// Sends a message that gets no response.
    async fn send(&mut self, message: &Value) {
        match &mut self.connection {
            Connection::Memory { .. } => panic!("in memory a request is all that can be sent"),
            Connection::Stdio(lines) => lines.send(message).await,
            Connection::Http { address, session, .. } => {
                let sent = HttpRequest::post(message.to_string()).session(session).send(*address).await;
                assert_eq!(sent.status, 202, "{}", sent.text());
            }
        }
    }

    /// Sends a request without waiting for its response, and returns its id.
    pub async fn start(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.declare(&mut params);
        match &mut self.connection {
            Connection::Memory { .. } => panic!("in memory a request and its reply are one call"),
            Connection::Stdio(lines) => lines.start(id, method, params).await,
            Connection::Http { address, session, pending, .. } => {
                let request = if self.revision.is_modern() {
                    HttpRequest::modern(id, method, params)
                } else {
                    HttpRequest::legacy(session, id, method, &params)
                };
                let request = self.headers.iter().fold(request, |r, (name, value)| r.header(name, value));
                pending.push(Pending::send(&request, *address).await);
            }
        }
        id
    }

    /// Adds the `_meta` of every modern request.
    fn declare(&self, params: &mut Value) {
        if self.revision.is_modern() {
            let meta = params.as_object_mut().expect("params").entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = self.revision.as_str().into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
    }

    /// Sends a notification in the session.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&notification(method, params)).await;
    }

    /// Subscribes to what the filter names, as the revision defines, and returns what the server acknowledges.
    pub async fn listen(&mut self, filter: Value) -> Value {
        if let Connection::Memory { server, changes } = &mut self.connection {
            let listening = server.listen(filter).await;
            let acknowledged = listening.acknowledged().clone();
            *changes = Some(listening);
            self.subscription = json!(1);
            return acknowledged;
        }
        if self.revision.is_modern() {
            let id = self.start("subscriptions/listen", json!({ "notifications": filter })).await;
            if let Connection::Http { pending, events, .. } = &mut self.connection {
                *events = Some(pending.pop().expect("a request").stream().await);
            }
            let first = self.next_message().await;
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
            assert_eq!(first["params"]["_meta"], json!({ SUBSCRIPTION: id }), "{first}");
            self.subscription = id.into();
            return first["params"]["notifications"].clone();
        }
        // a session is notified of list changes automatically, from `notifications/initialized` on
        self.request("ping", json!({})).await;
        if let Connection::Http { address, session, events, .. } = &mut self.connection {
            let get = HttpRequest::standalone_stream(session);
            *events = Some(EventStream::open(&get, *address).await.expect("a stream"));
        }
        for uri in filter["resourceSubscriptions"].as_array().into_iter().flatten() {
            let reply = self.request("resources/subscribe", json!({ "uri": uri })).await.reply;
            assert_eq!(reply, json!({}));
        }
        filter
    }

    /// Subscribes to an event, and returns the `params` of the first message; the next ones are in `next_message`.
    pub async fn stream_events(&mut self, params: Value) -> Value {
        if let Connection::Memory { server, changes } = &mut self.connection {
            assert!(params.get("cursor").is_none(), "in memory, a stream begins now");
            let name = params["name"].as_str().expect("a name").to_owned();
            let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let events = server.events(&name, arguments).await;
            let begun = events.acknowledged().clone();
            *changes = Some(events);
            self.subscription = begun["_meta"][SUBSCRIPTION].clone();
            return begun;
        }
        let id = self.start("events/stream", params).await;
        if let Connection::Http { pending, events, .. } = &mut self.connection {
            *events = Some(pending.pop().expect("a request").stream().await);
        }
        let first = self.next_message().await;
        assert_eq!(first["method"], "notifications/events/active", "{first}");
        assert_eq!(first["params"]["_meta"], json!({ SUBSCRIPTION: id }), "{first}");
        self.subscription = id.into();
        first["params"].clone()
    }

    /// The inner client of an in-memory connection.
    pub fn memory(&self) -> &TestServer {
        match &self.connection {
            Connection::Memory { server, .. } => server,
            _ => panic!("it is not in memory"),
        }
    }

    /// The id that messages of the listen stream must carry.
    pub fn subscription(&self) -> &Value {
        &self.subscription
    }

    /// The next message that belongs to no request other than `subscriptions/listen`.
    pub async fn next_message(&mut self) -> Value {
        if let Some(message) = self.changes.pop_front() {
            return message;
        }
        match &mut self.connection {
            Connection::Memory { changes, .. } => changes.as_mut().expect("it listens").next().await,
            Connection::Stdio(lines) => lines.message().await,
            Connection::Http { events, .. } => events.as_mut().expect("it listens").message().await,
        }
    }

    /// Disconnects: closes its input, and the connections of pending requests.
    pub async fn disconnect(&mut self) {
        match &mut self.connection {
            Connection::Memory { .. } => panic!("in memory a request is dropped"),
            Connection::Stdio(lines) => lines.close_input().await,
            Connection::Http { pending, .. } => pending.clear(),
        }
    }

    /// The messages that still arrive, until the server closes its side.
    pub async fn rest(mut self) -> Vec<Value> {
        let Connection::Stdio(lines) = &mut self.connection else { panic!("its connections are closed") };
        let mut rest = Vec::new();
        while let Some(message) = lines.next().await {
            rest.push(message);
        }
        rest
    }
}

/// A request over HTTP, and its response as far as it has arrived.
enum Pending {
    Sent(HttpConnection),
    Replied(EventStream),
    Over,
}

impl Pending {
    async fn send(request: &HttpRequest, to: SocketAddr) -> Self {
        let mut connection = HttpConnection::open(to).await;
        connection.send(request).await;
        Self::Sent(connection)
    }

    /// The event stream that the response must be.
    async fn stream(self) -> EventStream {
        let Self::Sent(mut connection) = self else { panic!("its reply was read") };
        assert_eq!(connection.head().await.header("content-type"), Some("text/event-stream"));
        EventStream::of(connection)
    }

    /// The next message; `None` at the end of a stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            match std::mem::replace(self, Self::Over) {
                Self::Sent(mut connection) => {
                    let mut head = connection.head().await;
                    // a JSON response is a single message
                    if head.header("content-length").is_none() {
                        *self = Self::Replied(EventStream::of(connection));
                        continue;
                    }
                    connection.read_body(&mut head).await;
                    if head.header("content-type") == Some("application/json") {
                        return Some(head.json());
                    }
                    *self = Self::Replied(EventStream::whole(connection, head.text()));
                }
                Self::Replied(mut events) => {
                    let next = events.next().await;
                    *self = Self::Replied(events);
                    return next;
                }
                Self::Over => return None,
            }
        }
    }
}

/// Whether a message belongs to a subscription.
fn is_change(message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    ["/list_changed", "resources/updated", "notifications/tasks"].iter().any(|end| method.ends_with(end))
}

/// An acknowledgement has no other members.
#[track_caller]
fn acknowledged(reply: &Value) {
    let mut keys: Vec<_> = reply.as_object().expect("a result").keys().collect();
    keys.sort();
    assert_eq!(keys, ["_meta", "resultType"], "{reply}");
    assert_eq!(reply["resultType"], "complete");
}
