//! Raw HTTP/1.1 over TCP: requests with any method, header and body, connections that are kept alive, pipelined or cut,
//! and responses as they are on the wire.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use super::{initialize, messages, notification, request, within};

/// A request, with the headers of a well-behaved client until they are changed.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl HttpRequest {
    /// A request without a body, to `/mcp`.
    pub fn new(method: &'static str) -> Self {
        let headers = vec![("Host".into(), "localhost".into())];
        Self { method, path: "/mcp".into(), headers, body: Vec::new() }
    }

    /// A POST of that body, which may be invalid JSON.
    pub fn post(body: impl Into<Vec<u8>>) -> Self {
        let request = Self { body: body.into(), ..Self::new("POST") };
        request
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
    }

    /// A modern request, with all the headers and metadata that it needs.
    pub fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Self {
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
        let post = Self::post(request(id, method, params).to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        match name {
            Some(name) => post.header("Mcp-Name", &name),
            None => post,
        }
    }

    /// A request in a session, whose id `initialize` returned.
    pub fn legacy(session: &str, id: impl Into<Value>, method: &str, params: &Value) -> Self {
        Self::post(request(id, method, params.clone()).to_string()).session(session)
    }

    /// A notification outside of a session.
    pub fn notification(method: &str, params: &Value) -> Self {
        Self::post(notification(method, params.clone()).to_string())
    }

    /// The first request of a handshake.
    pub fn initialize(version: &str) -> Self {
        Self::initialize_with(version, &json!({}))
    }

    /// The same of a client with these capabilities.
    pub fn initialize_with(version: &str, capabilities: &Value) -> Self {
        Self::post(initialize(0, version, capabilities).to_string())
    }

    /// The GET that opens a session's standalone stream.
    pub fn standalone_stream(session: &str) -> Self {
        Self::new("GET").header("Accept", "text/event-stream").session(session)
    }

    /// With the header of a session.
    pub fn session(self, id: &str) -> Self {
        self.header("Mcp-Session-Id", id)
    }

    /// Adds a header, even if one with that name exists.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Without any header of that name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    /// Replaces the headers of that name.
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// With a changed body.
    pub fn map_body(mut self, edit: impl FnOnce(&mut Value)) -> Self {
        let mut body = serde_json::from_slice(&self.body).expect("JSON");
        edit(&mut body);
        self.body = body.to_string().into_bytes();
        self
    }

    /// With a changed text of its body: long values are put into it so, as the encoding of JSON is slow in debug builds.
    pub fn map_text(mut self, edit: impl FnOnce(String) -> String) -> Self {
        self.body = edit(String::from_utf8(self.body).expect("UTF-8")).into_bytes();
        self
    }

    /// To another path.
    pub fn path(mut self, path: &str) -> Self {
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

    /// The request as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head(&format!("Content-Length: {}\r\n", self.body.len()));
        bytes.extend(&self.body);
        bytes
    }

    /// The same, in chunks of that many bytes.
    pub fn chunked(&self, size: usize) -> Vec<u8> {
        let mut bytes = self.head("Transfer-Encoding: chunked\r\n");
        for chunk in self.body.chunks(size) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    /// Sends it on a new connection, and reads the whole response.
    pub async fn send(&self, to: SocketAddr) -> HttpResponse {
        let mut connection = HttpConnection::open(to).await;
        connection.send(self).await;
        connection.response().await
    }
}

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// Its status code.
    pub status: u16,
    /// Its headers, in their order.
    pub headers: Vec<(String, String)>,
    /// Its body, as far as it has been read.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The id of the session that `initialize` created.
    #[track_caller]
    pub fn session(&self) -> String {
        self.header("mcp-session-id").expect("a session").to_owned()
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The body of a JSON response.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.text());
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The code of an error reply.
    #[track_caller]
    pub fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().expect("an error")
    }

    /// The messages of an event stream.
    #[track_caller]
    pub fn messages(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "{}", self.text());
        messages(self.text())
    }
}

/// A socket that takes little of what is not read: as it is, the system may take megabytes.
pub async fn narrow_socket(to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16 << 10).expect("a size");
    within(socket.connect(to)).await.expect("connect")
}

/// What a connection reads and writes.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// One connection, on which requests can be pipelined.
pub struct HttpConnection {
    socket: Box<dyn ByteStream>,
    buffer: Vec<u8>,
}

impl HttpConnection {
    /// Connects.
    pub async fn open(to: SocketAddr) -> Self {
        let socket = within(TcpStream::connect(to)).await.expect("connect");
        socket.set_nodelay(true).expect("nodelay");
        Self::over(socket)
    }

    /// Uses an open connection, such as one with TLS.
    pub fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self { socket: Box::new(stream), buffer: Vec::new() }
    }

    /// Writes any bytes.
    pub async fn write(&mut self, bytes: &[u8]) {
        within(self.socket.write_all(bytes)).await.expect("write");
    }

    /// Writes for as long as the server reads.
    pub async fn try_write(&mut self, bytes: &[u8]) {
        let _may_be_closed = within(self.socket.write_all(bytes)).await;
    }

    /// Writes a request.
    pub async fn send(&mut self, request: &HttpRequest) {
        self.write(&request.bytes()).await;
    }

    async fn more(&mut self) -> bool {
        within(self.socket.read_buf(&mut self.buffer)).await.is_ok_and(|n| n > 0)
    }

    /// Whether the server closes the connection without sending another byte.
    pub async fn is_closed(&mut self) -> bool {
        !self.more().await
    }

    async fn take_until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|w| w == end) {
                return self.split(at + end.len());
            }
            assert!(self.more().await, "closed early: {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    async fn take(&mut self, size: usize) -> Vec<u8> {
        while self.buffer.len() < size {
            assert!(self.more().await, "closed early");
        }
        self.split(size)
    }

    /// The first bytes of what has been read, copied as a whole: a large body takes long byte by byte.
    fn split(&mut self, size: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(size);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The status and headers of the next response.
    pub async fn head(&mut self) -> HttpResponse {
        let head = String::from_utf8(self.take_until(b"\r\n\r\n").await).expect("ASCII");
        let mut lines = head.trim_end().split("\r\n");
        let status =
            lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse().ok()).expect("a status");
        let header =
            |l: &str| l.split_once(':').map(|(n, v)| (n.to_owned(), v.trim().to_owned())).expect("a header");
        HttpResponse { status, headers: lines.map(header).collect(), body: Vec::new() }
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.take_until(b"\r\n").await).expect("ASCII");
        let size = usize::from_str_radix(size.trim_end(), 16).expect("a size");
        let chunk = self.take(size).await;
        self.take_until(b"\r\n").await;
        (size > 0).then_some(chunk)
    }

    /// Reads the rest of a response's body.
    pub async fn read_body(&mut self, response: &mut HttpResponse) {
        if response.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                response.body.extend(chunk);
            }
        } else if let Some(length) = response.header("content-length") {
            let length = length.parse().expect("a length");
            response.body = self.take(length).await;
        }
    }

    /// The next response, with its whole body.
    pub async fn response(&mut self) -> HttpResponse {
        let mut response = self.head().await;
        self.read_body(&mut response).await;
        response
    }
}
