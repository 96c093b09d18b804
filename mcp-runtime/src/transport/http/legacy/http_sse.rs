//! HTTP+SSE, the transport of 2024-11-05, for clients that know no other: one event stream for everything that the
//! server says, and a POST for each message of the client. Each stream is a connection like that of stdio, with the
//! endpoint's bounds.
//!
//! See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{Method, Request as HttpRequest, Response, StatusCode};
use hyper::body::{Body, Bytes};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::resumable::AttachedReader;
use crate::{
    connection::{Caller, ClientData},
    transport::{
        connection::{ConnectionParts, SHUTDOWN_TIMEOUT, StreamConnection},
        http::{
            exchange::Exchange,
            headers::{HeaderField, ProtocolHeaders},
            request_body::{BodyBytes, receive},
            response::{self, HttpError, ResponseBody, event},
            service::Endpoint,
        },
        writer::{BacklogChunk, ConnectionWriter, OutputBuffer, WriteMode},
    },
};

/// Messages of a client that wait for the connection to take them.
const WAITING: usize = 16;
/// What the query of a message's URL begins with.
const QUERY: &str = "sessionId=";

/// The open streams, by the names that their clients send messages to.
#[derive(Debug, Default)]
pub(in crate::transport::http) struct SseStreams(Arc<Mutex<HashMap<Box<str>, OpenStream>>>);

/// Where the messages of one client go.
#[derive(Debug, Clone)]
struct OpenStream {
    messages: mpsc::Sender<BodyBytes>,
    caller: Option<Arc<Caller>>,
}

/// The name of an open stream; dropping it closes the way in.
struct NamedStream {
    name: Box<str>,
    all: SseStreams,
}

impl SseStreams {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, OpenStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<OpenStream> {
        self.lock().get(name).cloned()
    }

    /// `None` if there is no randomness for a name that cannot be guessed.
    fn enter(&self, stream: OpenStream) -> Option<NamedStream> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let name: Box<str> = format!("{:032x}", u128::from_ne_bytes(random)).into();
        self.lock().insert(name.clone(), stream);
        Some(NamedStream { name, all: Self(Arc::clone(&self.0)) })
    }
}

impl Drop for NamedStream {
    fn drop(&mut self) {
        self.all.lock().remove(&self.name);
    }
}

impl Endpoint {
    /// Answers one request to the path of HTTP+SSE.
    pub(in crate::transport::http) async fn answer_sse<B>(
        self: &Arc<Self>,
        request: HttpRequest<B>,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        let exchange = Exchange::new(parts, self.budgets.outbound.clone());
        let parts = exchange.parts();
        let head = ProtocolHeaders::read(&parts.headers);
        if let Err(refusal) = self.guard(parts, &head) {
            return refusal.into();
        }
        let mut response = match parts.method {
            Method::OPTIONS => response::preflight(&parts.headers, "GET, POST"),
            Method::GET => self.open_sse(&exchange).unwrap_or_else(Into::into),
            Method::POST => self.take_sse(&exchange, &head, body).await.unwrap_or_else(Into::into),
            _ => response::not_allowed("GET, POST"),
        };
        if let HeaderField::One(origin) = head.origin {
            response::expose(response.headers_mut(), origin);
        }
        response
    }

    /// Opens a stream; its first event names the URL for messages.
    fn open_sse(self: &Arc<Self>, exchange: &Arc<Exchange>) -> Result<Response<ResponseBody>, HttpError> {
        if !exchange.accepts().stream {
            return Err(HttpError::no_stream());
        }
        let permit = self.budgets.streams.try_acquire(1).ok_or_else(HttpError::too_many_streams)?;
        let caller = self.caller(exchange.parts());
        let (messages, incoming) = mpsc::channel(WAITING);
        let named = self.legacy.sse.enter(OpenStream { messages, caller: caller.clone() });
        let named = named.ok_or_else(HttpError::too_many_streams)?;
        let context = self.context(exchange, exchange.clone(), caller, ClientData::NONE);
        let (reader, body) = AttachedReader::new(self, Some(permit));
        let connection_parts = ConnectionParts {
            server: self.server.clone(),
            writer: ConnectionWriter::new(WriteMode::Async),
            runtime: Handle::current(),
            context,
            requests: Some(self.budgets.requests().clone()),
        };
        tokio::spawn(self.clone().serve_sse(named, connection_parts, incoming, reader));
        Ok(response::events(body))
    }

    /// Serves one stream until its client goes away, the server stops, or it has lasted as long as a session may.
    async fn serve_sse(
        self: Arc<Self>,
        named: NamedStream,
        connection_parts: ConnectionParts,
        mut incoming: mpsc::Receiver<BodyBytes>,
        reader: AttachedReader,
    ) {
        // relative to the stream's own URL, so that it is right behind any prefix
        let first = format!("event: endpoint\ndata: ?{QUERY}{}\n\n", named.name);
        if !reader.send(first.into_bytes()).await {
            return;
        }
        let writer = connection_parts.writer.clone();
        let (mut connection, scheduler) = StreamConnection::new(connection_parts);
        let until = Instant::now() + self.options.session_lifetime;
        let read = async {
            let messages = async {
                let mut out = OutputBuffer::default();
                while let Some(message) = incoming.recv().await {
                    connection.serve_text(&message.text, &mut out);
                    out.flush(&writer);
                    if writer.is_full() {
                        writer.wait_for_capacity().await;
                    }
                }
            };
            tokio::select! {
                () = messages => {}
                // the end of its input lets the connection end as it does on stdio
                () = self.shutdown.fired() => {}
                () = sleep_until(until) => {}
            }
            drop(named);
        };
        let write = async {
            let mut chunk = BacklogChunk::default();
            while let Some(next) = writer.next_chunk(chunk).await {
                let mut events = Vec::with_capacity(next.bytes.len() + 64);
                for line in next.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    event(&mut events, line);
                }
                if !reader.send(events).await {
                    return;
                }
                chunk = next;
            }
        };
        let shutdown_timeout = self.server.options().drain.unwrap_or(SHUTDOWN_TIMEOUT);
        tokio::select! {
            () = scheduler.supervise(read, std::future::ready(()), shutdown_timeout) => {}
            () = write => {}
            () = reader.gone() => {}
        }
    }

    /// Takes one message.
    async fn take_sse<B>(
        &self,
        exchange: &Exchange,
        head: &ProtocolHeaders<'_>,
        body: B,
    ) -> Result<Response<ResponseBody>, HttpError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let parts = exchange.parts();
        let name =
            parts.uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix(QUERY)));
        let caller = self.caller(parts);
        let found = name.and_then(|name| self.legacy.sse.find(name));
        let open = found.filter(|open| open.caller == caller).ok_or_else(HttpError::no_sse_stream)?;
        if !head.is_json() {
            return Err(HttpError::wrong_type());
        }
        let _place = self.budgets.admit()?;
        let options = &self.options;
        let message =
            receive(body, options.max_body, options.body_timeout, head.expects, &self.budgets.bodies).await?;
        match timeout(options.body_timeout, open.messages.send(message)).await {
            Ok(Ok(())) => Ok(response::empty(StatusCode::ACCEPTED)),
            Ok(Err(_)) => Err(HttpError::no_sse_stream()),
            Err(_) => Err(HttpError::busy()),
        }
    }
}
