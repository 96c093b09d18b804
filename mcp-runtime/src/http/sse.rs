//! HTTP+SSE, the transport of 2024-11-05, for clients that know no other: one event stream for everything that the
//! server says, and a POST for each message of the client. Each stream is a connection like that of stdio. The
//! endpoint calls it for a path of its own.
//!
//! See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::http::{Method, Response, StatusCode};
use hyper::body::{Body, Bytes};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, ReadHalf, SimplexStream, WriteHalf, simplex},
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{
    endpoint::Endpoint,
    exchange::Exchange,
    feed::{Place, Reader},
    head::Head,
    receive::receive,
    reply::{self, Refusal, Reply},
    stream::KEEP_ALIVE,
};
use crate::context::{Caller, Peer};

/// Bytes on their way through a pipe.
const PIPE: usize = 64 << 10;
/// Messages of a client that wait for the connection to take them.
const WAITING: usize = 16;
/// What the query of a message's URL begins with.
const QUERY: &str = "sessionId=";

/// The open streams, by the names that their clients send messages to.
#[derive(Debug, Default)]
pub(super) struct Connections(Arc<Mutex<HashMap<Box<str>, Connection>>>);

/// Where the messages of one client go.
#[derive(Debug, Clone)]
struct Connection {
    lines: mpsc::Sender<Vec<u8>>,
    caller: Option<Arc<Caller>>,
}

/// The name of an open stream; dropping it closes the way in.
struct Named {
    name: Box<str>,
    all: Connections,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<Connection> {
        self.lock().get(name).cloned()
    }

    /// `None` if there is no randomness for a name that nobody can guess.
    fn enter(&self, connection: Connection) -> Option<Named> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let name: Box<str> = format!("{:032x}", u128::from_ne_bytes(random)).into();
        self.lock().insert(name.clone(), connection);
        Some(Named { name, all: Self(Arc::clone(&self.0)) })
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.all.lock().remove(&self.name);
    }
}

impl Endpoint {
    /// Answers one request to the path of the old transport.
    pub(super) async fn old<B>(
        self: &Arc<Self>,
        exchange: &Arc<Exchange>,
        head: &Head<'_>,
        body: B,
    ) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        match exchange.parts().method {
            Method::GET => self.open_old(exchange, head).unwrap_or_else(Into::into),
            Method::POST => self.take_old(exchange, head, body).await.unwrap_or_else(Into::into),
            _ => reply::not_allowed("GET, POST"),
        }
    }

    /// Opens a stream; its first event names the URL for messages.
    fn open_old(
        self: &Arc<Self>,
        exchange: &Arc<Exchange>,
        head: &Head<'_>,
    ) -> Result<Response<Reply>, Refusal> {
        if !head.accepts(&exchange.parts().headers).stream {
            return Err(Refusal::no_stream());
        }
        let place =
            Place::enter(&self.streams, self.options.max_streams).ok_or_else(Refusal::too_many_streams)?;
        let caller = self.caller(exchange.parts());
        let (lines, messages) = mpsc::channel(WAITING);
        let connection = Connection { lines, caller: caller.clone() };
        let named = self.old.enter(connection).ok_or_else(Refusal::too_many_streams)?;
        let peer = Peer {
            request: self.slots(exchange),
            caller,
            restricted: self.options.caller.is_some(),
            headers: Some(Arc::clone(exchange) as _),
            ..Peer::default()
        };
        let (reader, events) = Reader::new(Some(place));
        tokio::spawn(Arc::clone(self).run_old(named, peer, messages, reader));
        Ok(reply::events(Reply::Events(events)))
    }

    /// Serves one stream until its client goes away, the server stops, or it has lasted as long as a session may.
    async fn run_old(
        self: Arc<Self>,
        named: Named,
        peer: Peer,
        messages: mpsc::Receiver<Vec<u8>>,
        reader: Reader,
    ) {
        // relative to the stream's own URL, so that it is right behind any prefix
        let first = format!("event: endpoint\ndata: ?{QUERY}{}\n\n", named.name);
        if !reader.send(first.into_bytes()).await {
            return;
        }
        let (input, mut feed) = simplex(PIPE);
        let (said, output) = simplex(PIPE);
        let until = Instant::now() + self.options.session_lifetime;
        let fill = async {
            tokio::select! {
                () = fill(messages, &mut feed) => {}
                // the end of its input lets the connection end as it does on stdio
                () = self.ending.fired() => {}
                () = sleep_until(until) => {}
            }
            drop(named);
            // dropping one half of a pipe does not close it
            let _gone = feed.shutdown().await;
        };
        let serve = self.server.serve_peer(input, output, peer);
        let tell = tell(said, &reader);
        tokio::pin!(fill, serve, tell);
        let mut filling = true;
        loop {
            tokio::select! {
                () = &mut fill, if filling => filling = false,
                served = &mut serve => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "an HTTP+SSE connection failed");
                    }
                    break;
                }
                () = &mut tell => return,
                () = reader.gone() => return,
            }
        }
        // what was said last is still in the pipe
        tell.await;
    }

    /// Takes one message.
    async fn take_old<B>(
        &self,
        exchange: &Exchange,
        head: &Head<'_>,
        body: B,
    ) -> Result<Response<Reply>, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let parts = exchange.parts();
        let name =
            parts.uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix(QUERY)));
        let caller = self.caller(parts);
        let found = name.and_then(|name| self.old.find(name));
        let connection = found.filter(|open| open.caller == caller).ok_or_else(Refusal::no_old_session)?;
        if !head.is_json() {
            return Err(Refusal::wrong_type());
        }
        let text = receive(body, self.options.max_body, self.options.body_timeout, head.expects).await?;
        // within JSON a raw line end can only be space between tokens
        let mut line: Vec<u8> =
            text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        line.push(b'\n');
        match timeout(self.options.body_timeout, connection.lines.send(line)).await {
            Ok(Ok(())) => Ok(reply::empty(StatusCode::ACCEPTED)),
            Ok(Err(_)) => Err(Refusal::no_old_session()),
            Err(_) => Err(Refusal::busy()),
        }
    }
}

/// Whole lines into a pipe: a message that is given up half-way must not spoil the next.
async fn fill(mut messages: mpsc::Receiver<Vec<u8>>, feed: &mut WriteHalf<SimplexStream>) {
    while let Some(line) = messages.recv().await {
        if feed.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Lines out of a pipe as events, with a comment whenever there was nothing for a while.
async fn tell(said: ReadHalf<SimplexStream>, reader: &Reader) {
    let mut lines = BufReader::new(said).split(b'\n');
    loop {
        let line = match timeout(KEEP_ALIVE, lines.next_segment()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => {
                reader.keep_alive();
                continue;
            }
        };
        let mut event = Vec::with_capacity(line.len() + 24);
        event.extend_from_slice(b"event: message\ndata: ");
        event.extend_from_slice(&line);
        event.extend_from_slice(b"\n\n");
        if !reader.send(event).await {
            return;
        }
    }
}
