//! A server that publishes, and clients that listen to it: in memory, over a pair of streams, over HTTP.

use std::net::SocketAddr;

use mcp_runtime::{
    Server, ServerBuilder, ServerHandle, ToolCall, ToolDef,
    prelude::*,
    testing::{Changes, TestServer},
};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
};

use crate::http::client::{Ask, Wire, messages, within};

/// The key of `_meta` that says which subscription a message belongs to.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A resource
#[mcp_resource(uri = "HTTP://Example.org/one")]
fn one() -> &'static str {
    "one"
}

/// A template
#[mcp_resource(uri = "item://{id}")]
pub(super) fn item(id: u32) -> String {
    id.to_string()
}

/// A resource for some
#[mcp_resource(uri = "secret://one", scopes("secret"))]
fn secret() -> &'static str {
    "secret"
}

/// A prompt
#[mcp_prompt]
fn greet() -> &'static str {
    "Greet."
}

/// Tells clients what has changed: a list by its name, or a resource
#[mcp_tool]
fn publish(what: String, server: &ServerHandle) -> &'static str {
    match what.as_str() {
        "tools" => server.tools_changed(),
        "prompts" => server.prompts_changed(),
        "resources" => server.resources_changed(),
        uri => server.resource_updated(uri),
    }
    "published"
}

/// A server with all of the above.
pub(super) fn builder() -> ServerBuilder {
    Server::builder("publisher", "1.0.0")
        .tool::<publish>()
        .resource::<one>()
        .resource::<item>()
        .resource::<secret>()
        .prompt::<greet>()
}

/// A tool made at run time.
pub(super) fn tool(name: &str) -> ToolDef {
    ToolDef::builder(name).handler(|_: ToolCall| async { "done" })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Memory,
    Stdio,
    Http,
}

pub(super) const WAYS: [Way; 3] = [Way::Memory, Way::Stdio, Way::Http];

/// `_meta` of the stateless era.
pub(super) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A connection over a pair of streams.
pub(crate) struct Pipe {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    pub(crate) served: JoinHandle<mcp_runtime::Result<()>>,
}

impl Pipe {
    pub(crate) fn open(server: &Server, capacity: usize) -> Self {
        let (ours, theirs) = duplex(capacity);
        let (reader, writer) = split(theirs);
        let server = server.clone();
        let served = tokio::spawn(async move { server.serve(reader, writer).await });
        let (input, output) = split(ours);
        Self { lines: BufReader::new(input).lines(), output, served }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.expect("write");
    }

    pub(crate) async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })).await;
    }

    /// The next message; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = within(self.lines.next_line()).await.expect("read")?;
        Some(serde_json::from_str(&line).expect("JSON"))
    }

    pub(crate) async fn message(&mut self) -> Value {
        self.next().await.expect("a message")
    }

    /// Sends a request, and waits for its answer, which must be the next message.
    pub(crate) async fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.request(id, method, params).await;
        let reply = self.message().await;
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    /// Listens, and gives the acknowledgement.
    pub(crate) async fn listen(&mut self, id: &str, filter: Value) -> Value {
        self.request(id, "subscriptions/listen", json!({ "notifications": filter, "_meta": meta() })).await;
        let first = self.message().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["_meta"], json!({ SUBSCRIPTION: id }), "{first}");
        first["params"]["notifications"].clone()
    }

    pub(crate) async fn shake_hands(&mut self, revision: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        self.ask("hello", "initialize", params).await["result"].clone()
    }

    /// Ends our side.
    pub(crate) async fn close(&mut self) {
        self.output.shutdown().await.expect("shut down");
    }
}

/// A listen stream over HTTP.
pub(crate) struct Events {
    pub(crate) wire: Wire,
    pub(crate) waiting: std::collections::VecDeque<Value>,
}

impl Events {
    /// The body that follows a head which was read.
    pub(crate) fn of(wire: Wire) -> Self {
        Self { wire, waiting: std::collections::VecDeque::new() }
    }

    /// Listens; the status is another than 200 where that is refused.
    pub(crate) async fn open(ask: Ask, at: SocketAddr) -> Result<Self, (u16, Value)> {
        let mut wire = Wire::open(at).await;
        wire.write(&ask.bytes()).await;
        let mut reply = wire.head().await;
        if reply.status == 200 {
            assert_eq!(reply.header("content-type"), Some("text/event-stream"));
            assert_eq!(reply.header("x-accel-buffering"), Some("no"));
            return Ok(Self::of(wire));
        }
        let length = reply.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if reply.status == 503 {
            assert_eq!(reply.header("retry-after"), Some("1"));
        }
        reply.body = wire.take(length).await;
        Err((reply.status, reply.json()))
    }

    /// The next message; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        while self.waiting.is_empty() {
            let chunk = self.wire.chunk().await?;
            self.waiting.extend(messages(std::str::from_utf8(&chunk).expect("UTF-8")));
        }
        self.waiting.pop_front()
    }
}

/// The request for a listen stream.
pub(super) fn listening(id: &str, filter: &Value) -> Ask {
    Ask::modern(id, "subscriptions/listen", json!({ "notifications": filter }))
}

/// A server over HTTP until it is dropped.
pub(super) struct Served {
    pub(super) at: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    over: JoinHandle<mcp_runtime::Result<()>>,
}

impl Served {
    pub(super) async fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let over = tokio::spawn(server.clone().serve_http_until(listener, async {
            let _dropped_or_sent = stopped.await;
        }));
        Self { at, stop: Some(stop), over }
    }

    /// Tells it to stop.
    pub(super) fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until it has stopped.
    pub(super) async fn over(self) {
        within(self.over).await.expect("no panic").expect("no error");
    }
}

/// One listen stream, whatever it goes over.
pub(super) struct Listener {
    pub(super) acknowledged: Value,
    line: Line,
}

enum Line {
    Memory(Changes),
    Stdio(Box<Pipe>),
    Http { events: Events, _served: Served },
}

impl Listener {
    pub(super) async fn open(server: &Server, way: Way, filter: Value) -> Self {
        match way {
            Way::Memory => {
                let changes = TestServer::of(server).listen(filter).await;
                Self { acknowledged: changes.acknowledged().clone(), line: Line::Memory(changes) }
            }
            Way::Stdio => {
                let mut pipe = Pipe::open(server, 1 << 16);
                Self { acknowledged: pipe.listen("s", filter).await, line: Line::Stdio(Box::new(pipe)) }
            }
            Way::Http => {
                let served = Served::start(server).await;
                let mut events = Events::open(listening("s", &filter), served.at).await.expect("a stream");
                let first = within(events.next()).await.expect("an acknowledgement");
                assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
                assert_eq!(first["params"]["_meta"], json!({ SUBSCRIPTION: "s" }), "{first}");
                Self {
                    acknowledged: first["params"]["notifications"].clone(),
                    line: Line::Http { events, _served: served },
                }
            }
        }
    }

    /// The next notification, which must be tagged: its method, and its URI if it has one.
    pub(super) async fn next(&mut self) -> (String, Option<String>) {
        let (message, id) = match &mut self.line {
            Line::Memory(changes) => (changes.next().await, json!(1)),
            Line::Stdio(pipe) => (pipe.message().await, json!("s")),
            Line::Http { events, .. } => (within(events.next()).await.expect("a message"), json!("s")),
        };
        let params = &message["params"];
        assert_eq!(params["_meta"], json!({ SUBSCRIPTION: id }), "{message}");
        let method = message["method"].as_str().unwrap_or_else(|| panic!("no notification: {message}"));
        (method.to_owned(), params["uri"].as_str().map(str::to_owned))
    }

    pub(super) async fn expect(&mut self, method: &str) {
        assert_eq!(self.next().await, (format!("notifications/{method}"), None));
    }

    pub(super) async fn expect_updated(&mut self, uri: &str) {
        assert_eq!(self.next().await, ("notifications/resources/updated".into(), Some(uri.into())));
    }
}
