//! One event stream of a session, apart from the connection that brings it: its events are numbered and kept, so that
//! a client whose connection broke can go on where it was.

use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use tokio::sync::Notify;

use super::{
    Sid,
    post::detach,
    table::{OpenSession, SessionMemory},
};
use crate::{
    admission::Permit,
    connection::{Outbound, Receiver},
    crypto::random_bytes,
    dispatch::{Calls, encode},
    protocol::Revision,
    store::{EventStore, StoredEvent},
    sync::Mutex,
    transport::http::{
        exchange::Exchange,
        response::{self, ResponseBody},
        service::Endpoint,
        sse::{write_empty, write_id, write_message, write_retry},
    },
};

/// Characters of a stream's name.
const NAME: usize = 23;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// The replies to one request.
    Call,
    /// What no request has asked for.
    Standalone,
}

impl StreamKind {
    const fn mark(self) -> char {
        match self {
            Self::Call => 'c',
            Self::Standalone => 's',
        }
    }
}

/// Where a client was on a stream: the wire's `Last-Event-ID`. It means something only within its session, which
/// belongs to one caller, and the stream's name cannot be guessed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventPosition<'a> {
    pub(super) stream: &'a str,
    pub(super) number: u64,
    pub(super) kind: StreamKind,
}

impl<'a> EventPosition<'a> {
    /// Reads an event id; `None` if it is not one of this server's.
    pub(super) fn read(id: &'a str) -> Option<Self> {
        let (stream, number) = id.split_once('.')?;
        let kind = [StreamKind::Call, StreamKind::Standalone]
            .into_iter()
            .find(|kind| stream.starts_with(kind.mark()))?;
        let named =
            stream.len() == NAME && stream.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        (named && digits).then_some(Self { stream, number: number.parse().ok()?, kind })
    }
}

/// What the transport keeps of the sessions' streams.
pub(super) type Streams = SessionMemory<Arc<ResumableStream>>;

/// One stream.
pub(super) struct ResumableStream {
    open: OpenSession<Arc<ResumableStream>>,
    session: Box<str>,
    name: Box<str>,
    pub(super) revision: Revision,
    /// Absent where events have no ids.
    store: Option<Arc<dyn EventStore>>,
    state: Mutex<ResumableState>,
    /// A connection was attached, or is to be closed.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct ResumableState {
    /// The number of the last event.
    last: u64,
    reader: Option<AttachedReader>,
    /// When the client is to come back, for a connection that is to be closed.
    close: Option<Duration>,
    over: bool,
}

/// A connection that brings a stream's events to the client; the connection ends when the last clone is dropped.
#[derive(Clone)]
pub(super) struct AttachedReader(Arc<Attachment>);

struct Attachment {
    outbound: Arc<Outbound>,
    /// Its place among the streams that were opened with GET, if it takes one.
    _permit: Option<Permit>,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.outbound.finish();
    }
}

impl AttachedReader {
    /// A connection, and the body of its response.
    pub(super) fn new(endpoint: &Endpoint, permit: Option<Permit>) -> (Self, ResponseBody) {
        let outbound = Outbound::new(endpoint.budgets.outbound.clone());
        let receiver = Receiver::new(outbound.clone());
        (Self(Arc::new(Attachment { outbound, _permit: permit })), ResponseBody::written(receiver))
    }

    /// Sends events as soon as there is room; `false` if the client has gone.
    pub(super) async fn send(&self, events: Vec<u8>) -> bool {
        self.0.outbound.send(events).await
    }

    /// Waits until the client has gone.
    pub(super) async fn gone(&self) {
        self.0.outbound.abandoned().await;
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What became of a connection that was to be attached.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attached {
    Yes,
    /// There are events that it has not got yet.
    Behind,
    /// Nothing more will come.
    Over,
}

impl ResumableStream {
    /// The stream of a request's calls; `None` if there is no randomness for its name.
    pub(super) fn of_calls(
        open: OpenSession<Arc<Self>>,
        revision: Revision,
        store: Arc<dyn EventStore>,
    ) -> Option<Arc<Self>> {
        Self::new(StreamKind::Call, open, revision, Some(store))
    }

    /// A new stream of a session; `None` if there is no randomness for its name.
    pub(super) fn new(
        kind: StreamKind,
        open: OpenSession<Arc<ResumableStream>>,
        revision: Revision,
        store: Option<Arc<dyn EventStore>>,
    ) -> Option<Arc<Self>> {
        let random = random_bytes::<16>().ok()?;
        let name = format!("{}{}", kind.mark(), URL_SAFE_NO_PAD.encode(random));
        Some(Arc::new(Self {
            session: session_name(&open.sid),
            open,
            name: name.into(),
            revision,
            store,
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    pub(super) fn memory(&self) -> &Arc<Streams> {
        &self.open.memory
    }

    /// Lets clients resume it, until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>) -> StreamRegistration {
        if self.store.is_some() {
            self.memory().streams.lock().insert(self.name.clone(), self.clone());
        }
        StreamRegistration(self.clone())
    }

    /// The event that a stream begins with, so that its client can come back before there was any other.
    pub(super) fn priming(&self) -> Vec<u8> {
        let retry = self.state.lock().close;
        self.mark(retry)
    }

    /// An event without a message, which tells a client where it is, and when to come back.
    fn mark(&self, retry: Option<Duration>) -> Vec<u8> {
        if self.store.is_none() || self.revision < Revision::V2025_11_25 {
            return Vec::new();
        }
        let mut out = Vec::new();
        write_id(&mut out, &self.name, self.state.lock().last);
        if let Some(after) = retry {
            write_retry(&mut out, after);
        }
        write_empty(&mut out);
        out
    }

    /// Writes an event.
    fn write(&self, out: &mut Vec<u8>, number: u64, message: &str) {
        if message.is_empty() {
            return;
        }
        if self.store.is_some() {
            write_id(out, &self.name, number);
        }
        write_message(out, message.as_bytes());
    }

    /// Keeps a message, and sends it to the client as soon as that keeps up.
    pub(super) async fn emit(&self, message: Vec<u8>, last: bool) {
        let Ok(message) = String::from_utf8(message) else { return };
        let number = self.state.lock().last + 1;
        let mut event = Vec::with_capacity(message.len() + 64);
        self.write(&mut event, number, &message);
        if let Some(store) = &self.store {
            // before it is sent: a client that got it can come back for what follows it
            store.append(&self.session, &self.name, StoredEvent::new(number, message, last)).await;
        }
        let reader = {
            let mut state = self.state.lock();
            state.last = number;
            state.reader.clone()
        };
        if let Some(reader) = reader
            && !reader.send(event).await
        {
            self.detach(&reader);
        }
    }

    /// The connection that brings the stream now.
    pub(super) fn reader(&self) -> Option<AttachedReader> {
        self.state.lock().reader.clone()
    }

    /// Waits until the client has gone; forever if there is no connection.
    pub(super) async fn gone(&self) {
        match self.reader() {
            Some(reader) => {
                reader.gone().await;
                self.detach(&reader);
            }
            None => std::future::pending().await,
        }
    }

    /// That connection reads no more.
    pub(super) fn detach(&self, reader: &AttachedReader) {
        let mut state = self.state.lock();
        if state.reader.as_ref().is_some_and(|current| current.is(reader)) {
            state.reader = None;
        }
    }

    /// Attaches a connection that has got everything up to that event; the one before it ends.
    pub(super) fn attach(&self, reader: &AttachedReader, upto: u64) -> Attached {
        let mut state = self.state.lock();
        if state.last > upto {
            return Attached::Behind;
        }
        if state.over {
            return Attached::Over;
        }
        state.reader = Some(reader.clone());
        drop(state);
        self.changed.notify_one();
        Attached::Yes
    }

    /// Has the connection closed, and the client come back after that time.
    pub(super) fn close(&self, retry: Duration) {
        self.state.lock().close = Some(retry);
        self.changed.notify_one();
    }

    /// Whether the connection is to be closed.
    pub(super) fn closes(&self) -> bool {
        self.state.lock().close.is_some()
    }

    /// Closes the connection, if that was asked for and there is one; `marked`: the client knows already when to come
    /// back.
    fn close_now(&self, marked: bool) {
        let (reader, retry) = {
            let mut state = self.state.lock();
            let retry = state.close.take();
            let Some(reader) = state.reader.take() else { return };
            (reader, retry)
        };
        if !marked {
            reader.0.outbound.put(self.mark(retry));
        }
    }

    /// Answers calls with this stream. They go on, and their messages are kept, with or without a client that reads.
    pub(super) fn start(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        calls: Calls,
        exchange: &Exchange,
    ) -> Response<ResponseBody> {
        let (reader, body) = AttachedReader::new(endpoint, None);
        let registered = self.register();
        let closes = self.closes();
        reader.0.outbound.put(self.priming());
        self.attach(&reader, 0);
        let outbound = exchange.outbound().clone();
        tokio::spawn(forward(self.clone(), registered, Receiver::new(outbound.clone())));
        tokio::spawn(run(endpoint.clone(), self.clone(), calls, outbound, closes));
        response::events(body)
    }

    /// Nothing more will come: the connection ends with what it has got.
    fn end(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.reader = None;
    }

    /// Sends a connection all that it has missed, and attaches it; one that could not be attached ends then.
    pub(super) async fn resume(&self, reader: &AttachedReader, mut upto: u64) {
        loop {
            let last = self.state.lock().last;
            let missed = match &self.store {
                Some(store) => store.read(&self.session, &self.name, upto).await.unwrap_or_default(),
                None => Vec::new(),
            };
            let mut out = Vec::new();
            for event in missed {
                self.write(&mut out, event.number, &event.message);
                upto = upto.max(event.number);
            }
            if !reader.send(out).await {
                return;
            }
            // what the store has forgotten will not come any more
            upto = upto.max(last);
            if self.attach(reader, upto) != Attached::Behind {
                return;
            }
        }
    }
}

/// Drives the calls of a stream, whether or not a client reads it.
async fn run(
    endpoint: Arc<Endpoint>,
    stream: Arc<ResumableStream>,
    mut calls: Calls,
    outbound: Arc<Outbound>,
    mut marked: bool,
) {
    let revision = calls.revision;
    let mut detached = false;
    loop {
        let closes = stream.closes();
        if !detached && (closes || stream.reader().is_none()) {
            // a call without a client takes another place than one that is served
            detached = detach(&endpoint, &mut calls);
            if !detached && stream.reader().is_none() {
                break;
            }
        }
        if closes && detached {
            stream.close_now(std::mem::take(&mut marked));
        }
        tokio::select! {
            biased;
            () = poll_fn(|cx| {
                let polled = calls.poll(cx);
                for (id, reply) in calls.take_replies() {
                    let mut out = Vec::with_capacity(256);
                    encode(&mut out, &reply, &id, revision, endpoint.server.identity());
                    outbound.put(out);
                }
                polled
            }) => break,
            () = stream.gone() => {}
            () = stream.changed.notified() => {}
        }
    }
    drop(calls);
    outbound.finish();
}

/// Numbers and keeps what calls send, and brings it to the client as fast as that reads.
async fn forward(stream: Arc<ResumableStream>, registered: StreamRegistration, mut receiver: Receiver) {
    let _registered = registered;
    let session_ended = stream.memory().ended.clone();
    let mut is_last = false;
    let messages = async {
        while let Some(messages) = poll_fn(|cx| receiver.poll(cx)).await {
            let count = messages.len();
            for (n, message) in messages.into_iter().enumerate() {
                is_last = n + 1 == count && receiver.is_finished();
                stream.emit(message, is_last).await;
            }
        }
        if !is_last {
            // cancelled: a client that comes back for more must learn that there is nothing to wait for
            if let Some(reader) = stream.reader() {
                reader.send(stream.mark(None)).await;
            }
            stream.emit(Vec::new(), true).await;
        }
    };
    tokio::select! {
        biased;
        () = messages => {}
        // a client that does not read holds this up, but not beyond the end of its session
        () = session_ended.cancelled() => {}
    }
}

/// What stores call a session.
pub(super) fn session_name(sid: &Sid) -> Box<str> {
    URL_SAFE_NO_PAD.encode(sid).into()
}

impl fmt::Debug for ResumableStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumableStream").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A stream that clients can resume; dropping it ends the stream.
pub(super) struct StreamRegistration(Arc<ResumableStream>);

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        self.0.end();
        let removed = self.0.memory().streams.lock().remove(&self.0.name);
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_as_it_was_written() {
        let name = format!("c{}", URL_SAFE_NO_PAD.encode([0xfb; 16]));
        let id = format!("{name}.42");
        let position = EventPosition { stream: &name, number: 42, kind: StreamKind::Call };
        assert_eq!(EventPosition::read(&id), Some(position));
        let huge = format!("{name}.99999999999999999999999");
        for bad in ["", ".", "1", &name, &format!("{name}."), &format!("{name}.-1"), &format!("x{id}"), &huge]
        {
            assert_eq!(EventPosition::read(bad), None, "{bad}");
        }
        assert_eq!(EventPosition::read(&id.replacen('c', "x", 1)), None);
        assert_eq!(EventPosition::read(&id.replacen('-', "é", 1)), None);
    }
}
