//! A server that a test plays for a client, at the other end of a stream: by a function of each message, or message by
//! message.

use std::{io, time::Duration};

use mcp_runtime::Revision;
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::sleep,
};

use super::within;

/// The client's end of the stream.
pub type ClientStreams = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

/// What a played server does with a message.
#[derive(Debug, Clone)]
pub enum Act {
    /// Responds with this result, if the message is a request.
    Result(Value),
    /// Responds after this time, and goes on meanwhile.
    Later(Duration, Value),
    /// Responds with this error, if the message is a request.
    Error(i64),
    /// Sends these messages.
    Say(Vec<Value>),
    /// Sends these bytes as a line.
    Bytes(Vec<u8>),
    /// Does nothing.
    Silence,
    /// Ends the stream.
    End,
}

impl From<Result<Value, i64>> for Act {
    fn from(reply: Result<Value, i64>) -> Self {
        reply.map_or_else(Self::Error, Self::Result)
    }
}

/// The response to a request.
pub fn response(request: &Value, result: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result.into() })
}

/// An error in response to a request; it names a revision, as that of an unsupported one does.
pub fn refusal(request: &Value, code: i64) -> Value {
    let data = json!({ "supported": ["2026-07-28", "1900-01-01"] });
    json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no", "data": data } })
}

/// The result of `server/discover` of a server of 2026-07-28 with these capabilities.
#[allow(clippy::needless_pass_by_value, reason = "capabilities are written where they are used")]
pub fn discovered(capabilities: Value) -> Value {
    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities })
}

/// The result of `initialize` of a legacy server with these capabilities.
#[allow(clippy::needless_pass_by_value, reason = "capabilities are written where they are used")]
pub fn initialized(version: &str, capabilities: Value) -> Value {
    json!({ "protocolVersion": version, "capabilities": capabilities,
        "serverInfo": { "name": "played", "version": "1" } })
}

/// The handshake of a server of that revision, and `answer` for the rest.
pub fn with_handshake<A: Into<Act>>(
    revision: Revision,
    capabilities: Value,
    mut answer: impl FnMut(&str, &Value) -> A + Send + 'static,
) -> impl FnMut(&str, &Value) -> Act + Send + 'static {
    move |method, message| match method {
        "server/discover" if revision.is_modern() => Act::Result(discovered(capabilities.clone())),
        "server/discover" => Act::Error(-32601),
        "initialize" => Act::Result(initialized(revision.as_str(), capabilities.clone())),
        _ => answer(method, message).into(),
    }
}

/// Plays a server by a function of each message, with its method; responses have none. What is given to the sender is sent
/// as well.
pub fn play<A: Into<Act>>(
    mut answer: impl FnMut(&str, &Value) -> A + Send + 'static,
) -> (ClientStreams, UnboundedSender<Value>) {
    let (streams, mut peer) = Peer::new(1 << 16);
    let (sender, mut queue) = unbounded_channel();
    let later = sender.clone();
    let played = async move {
        loop {
            let message = tokio::select! {
                message = peer.read() => message,
                Some(message) = queue.recv() => {
                    peer.write(message_line(&message).as_bytes()).await?;
                    continue;
                }
            };
            let Some(message) = message else { return io::Result::Ok(()) };
            let is_request = message.get("id").is_some() && message.get("method").is_some();
            let said = match answer(message["method"].as_str().unwrap_or_default(), &message).into() {
                Act::Result(result) if is_request => vec![response(&message, result)],
                Act::Error(code) if is_request => vec![refusal(&message, code)],
                Act::Later(delay, result) => {
                    let (later, reply) = (later.clone(), response(&message, result));
                    tokio::spawn(async move {
                        sleep(delay).await;
                        later.send(reply)
                    });
                    continue;
                }
                Act::Say(messages) => messages,
                Act::Bytes(bytes) => {
                    peer.write(&[&bytes[..], b"\n"].concat()).await?;
                    continue;
                }
                Act::Result(_) | Act::Error(_) | Act::Silence => continue,
                Act::End => return Ok(()),
            };
            let lines: String = said.iter().map(message_line).collect();
            peer.write(lines.as_bytes()).await?;
        }
    };
    tokio::spawn(played);
    (streams, sender)
}

fn message_line(message: &Value) -> String {
    format!("{message}\n")
}

/// A server that a test plays message by message. It reads only when the test asks for a message.
pub struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    /// A stream that buffers that many bytes in either direction.
    pub fn new(capacity: usize) -> (ClientStreams, Self) {
        let (ours, theirs) = duplex(capacity);
        let (reader, writer) = split(theirs);
        (split(ours), Self { lines: BufReader::new(reader).lines(), writer })
    }

    /// The next message of the client, however long it takes; `None` at the end of the stream.
    pub async fn read(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        Some(serde_json::from_str(&line).expect("lines have messages only"))
    }

    /// The next message of the client.
    pub async fn next(&mut self) -> Value {
        within(self.read()).await.expect("a message")
    }

    /// Writes any bytes.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Value) {
        self.write(message_line(message).as_bytes()).await.expect("the client reads");
    }

    /// Responds to a request.
    pub async fn reply(&mut self, request: &Value, result: &Value) {
        self.send(&response(request, result.clone())).await;
    }

    /// Answers the next message, which must be this request.
    pub async fn answer(&mut self, method: &str, result: &Value) -> Value {
        let request = self.next().await;
        assert_eq!(request["method"], method, "{request}");
        self.reply(&request, result).await;
        request
    }

    /// The reply to a request of this server.
    pub async fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params })).await;
        let reply = self.next().await;
        assert_eq!(reply["id"], "q", "{reply}");
        reply
    }
}
