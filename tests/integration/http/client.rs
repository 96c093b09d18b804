//! A raw HTTP/1.1 client over TCP. Every HTTP test uses it.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Longer than any healthy test takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Fails a test that hangs.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("the test hangs")
}

/// A request, with the headers of a well-behaved client until they are changed.
#[derive(Clone)]
pub(crate) struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    fn new(method: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { method, path: "/mcp".into(), headers: Vec::new(), body: body.into() }
            .header("Host", "localhost")
    }

    pub(crate) fn post(body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", body)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
    }

    pub(crate) fn other(method: &'static str) -> Self {
        Self::new(method, "")
    }

    /// A request of 2026-07-28 with all that it has to say.
    pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Self {
        let name = params
            .get("name")
            .or(params.get("uri"))
            .or(params.get("taskId"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        let meta = params.as_object_mut().expect("params").entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        if meta.get("io.modelcontextprotocol/clientCapabilities").is_none() {
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let body = json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params});
        let ask = Self::post(body.to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        match name {
            Some(name) => ask.header("Mcp-Name", &name),
            None => ask,
        }
    }

    /// A request of the handshake era; `session` as `initialize` gave it.
    pub(crate) fn legacy(session: &str, id: impl Into<Value>, method: &str, params: &Value) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params});
        Self::post(body.to_string()).header("Mcp-Session-Id", session)
    }

    pub(crate) fn notification(method: &str, params: &Value) -> Self {
        Self::post(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
    }

    pub(crate) fn initialize(version: &str) -> Self {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        Self::post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// The same with another body.
    pub(crate) fn map_body(mut self, edit: impl FnOnce(&mut Value)) -> Self {
        let mut body = serde_json::from_slice(&self.body).expect("JSON");
        edit(&mut body);
        self.body = body.to_string().into_bytes();
        self
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    fn head(&self, length: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(length);
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head(&format!("Content-Length: {}\r\n", self.body.len()));
        bytes.extend(&self.body);
        bytes
    }

    /// The same in chunks of that many bytes.
    pub(crate) fn chunked(&self, size: usize) -> Vec<u8> {
        let mut bytes = self.head("Transfer-Encoding: chunked\r\n");
        for chunk in self.body.chunks(size) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    /// Sends it on a connection of its own.
    pub(crate) async fn send(&self, to: SocketAddr) -> Reply {
        let mut wire = Wire::open(to).await;
        wire.write(&self.bytes()).await;
        wire.reply().await
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The body of a JSON response.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.text());
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The code of an error reply.
    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().expect("an error")
    }

    /// The messages of an event stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "{}", self.text());
        messages(self.text())
    }
}

/// The messages in the text of an event stream.
pub(crate) fn messages(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|l| l.strip_prefix("data: "))
        // an event without a message only says where the stream is
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_str(l).expect("one line"))
        .collect()
}

/// The text of a tool's first block.
pub(crate) fn said(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}

/// One connection.
pub(crate) struct Wire {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        let socket = TcpStream::connect(to).await.expect("connect");
        socket.set_nodelay(true).expect("nodelay");
        Self { socket, buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("write");
    }

    /// Writes as long as the other side listens.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) {
        let _may_be_closed = self.socket.write_all(bytes).await;
    }

    async fn more(&mut self) -> bool {
        timeout(PATIENCE, self.socket.read_buf(&mut self.buffer))
            .await
            .expect("no answer")
            .is_ok_and(|n| n > 0)
    }

    /// Whether the other side has closed.
    pub(crate) async fn is_closed(&mut self) -> bool {
        !self.more().await
    }

    async fn take_until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|w| w == end) {
                return self.buffer.drain(..at + end.len()).collect();
            }
            assert!(self.more().await, "closed early: {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    pub(crate) async fn take(&mut self, size: usize) -> Vec<u8> {
        while self.buffer.len() < size {
            assert!(self.more().await, "closed early");
        }
        self.buffer.drain(..size).collect()
    }

    /// The head of the next response.
    pub(crate) async fn head(&mut self) -> Reply {
        let head = String::from_utf8(self.take_until(b"\r\n\r\n").await).expect("ASCII");
        let mut lines = head.trim_end().split("\r\n");
        let status =
            lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse().ok()).expect("a status");
        let header =
            |l: &str| l.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned())).expect("a header");
        Reply { status, headers: lines.map(header).collect(), body: Vec::new() }
    }

    /// The next chunk of a body that comes in chunks; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.take_until(b"\r\n").await).expect("ASCII");
        let size = usize::from_str_radix(size.trim_end(), 16).expect("a size");
        let chunk = self.take(size).await;
        self.take_until(b"\r\n").await;
        (size > 0).then_some(chunk)
    }

    /// The next response, all of it.
    pub(crate) async fn reply(&mut self) -> Reply {
        let mut reply = self.head().await;
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                reply.body.extend(chunk);
            }
        } else if let Some(length) = reply.header("content-length") {
            let length = length.parse().expect("a length");
            reply.body = self.take(length).await;
        }
        reply
    }
}
