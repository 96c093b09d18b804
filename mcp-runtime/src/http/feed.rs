//! One event stream of a session, apart from the connection that brings it: its events are numbered and kept, so that
//! a client whose connection broke can go on where it was. Pumps fill feeds, responses are attached to them.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::body::Bytes;
use tokio::sync::{Notify, mpsc};

use super::queue;
use crate::{
    protocol::Revision,
    session::{EventStore, Memory, Open, Sid, StoredEvent},
};

/// Events on their way to a connection.
const CHANNEL: usize = 64;
/// Characters of a stream's name.
const NAME: usize = 23;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The replies to one request.
    Call,
    /// Whatever the server has to say.
    Standing,
}

impl Kind {
    const fn mark(self) -> char {
        match self {
            Self::Call => 'c',
            Self::Standing => 's',
        }
    }
}

/// Where a client was on a stream: the wire's `Last-Event-ID`. It means something only within its session, which
/// belongs to one caller, and the stream's name cannot be guessed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Position<'a> {
    pub(super) stream: &'a str,
    pub(super) number: u64,
    pub(super) kind: Kind,
}

impl<'a> Position<'a> {
    /// Reads an event id; `None` if it is none of ours.
    pub(super) fn read(id: &'a str) -> Option<Self> {
        let (stream, number) = id.split_once('.')?;
        let kind = [Kind::Call, Kind::Standing].into_iter().find(|kind| stream.starts_with(kind.mark()))?;
        let named =
            stream.len() == NAME && stream.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        (named && digits).then_some(Self { stream, number: number.parse().ok()?, kind })
    }
}

/// What the transport keeps of the sessions' streams.
pub(super) type Streams = Memory<Arc<Feed>>;

/// One stream.
pub(super) struct Feed {
    open: Open<Arc<Feed>>,
    session: Box<str>,
    name: Box<str>,
    pub(super) revision: Revision,
    /// Absent where events have no ids.
    store: Option<Arc<dyn EventStore>>,
    state: Mutex<State>,
    /// A connection was attached, or is to be closed.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct State {
    /// The number of the last event.
    last: u64,
    reader: Option<Reader>,
    /// When the client is to come back, for a connection that is to be closed.
    close: Option<Duration>,
    over: bool,
}

/// A connection that brings a feed's events to the client.
#[derive(Clone)]
pub(super) struct Reader {
    sender: mpsc::Sender<Bytes>,
    /// Its place among the standing streams, if it takes one.
    _place: Option<Arc<Place>>,
}

/// The other end of a reader.
pub(super) type Events = mpsc::Receiver<Bytes>;

impl Reader {
    pub(super) fn new(place: Option<Place>) -> (Self, Events) {
        let (sender, events) = mpsc::channel(CHANNEL);
        (Self { sender, _place: place.map(Arc::new) }, events)
    }

    /// Sends events as soon as there is room; `false` if nobody reads them.
    pub(super) async fn send(&self, events: Vec<u8>) -> bool {
        events.is_empty() || self.sender.send(events.into()).await.is_ok()
    }

    /// Waits until nobody reads any more.
    pub(super) async fn gone(&self) {
        self.sender.closed().await;
    }

    /// Sends a comment, if there is room, so that nothing on the way takes the connection for dead.
    pub(super) fn keep_alive(&self) {
        // whoever has something to read already needs none
        let _sent = self.sender.try_send(Bytes::from_static(b":\n\n"));
    }

    fn is(&self, other: &Self) -> bool {
        self.sender.same_channel(&other.sender)
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

impl Feed {
    /// A new stream of a session; `None` if there is no randomness for its name.
    pub(super) fn new(
        kind: Kind,
        open: Open<Arc<Feed>>,
        revision: Revision,
        store: Option<Arc<dyn EventStore>>,
    ) -> Option<Arc<Self>> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> &Arc<Streams> {
        &self.open.memory
    }

    /// Lets clients resume it, until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>) -> Registered {
        if self.store.is_some() {
            self.memory().streams().insert(self.name.clone(), self.clone());
        }
        Registered(self.clone())
    }

    /// The event that a stream begins with, so that its client can come back before there was any other.
    pub(super) fn priming(&self) -> Vec<u8> {
        let retry = self.state().close;
        self.mark(retry)
    }

    /// An event without a message, which tells a client where it is, and when to come back.
    fn mark(&self, retry: Option<Duration>) -> Vec<u8> {
        if self.store.is_none() || self.revision < Revision::V2025_11_25 {
            return Vec::new();
        }
        let retry = retry.map_or_else(String::new, |retry| format!("retry: {}\n", retry.as_millis()));
        format!("id: {}.{}\n{retry}data: \n\n", self.name, self.state().last).into_bytes()
    }

    /// Writes an event.
    fn write(&self, out: &mut Vec<u8>, number: u64, message: &str) {
        if message.is_empty() {
            return;
        }
        if self.store.is_some() {
            write_id(out, &self.name, number);
        }
        queue::event(out, message.as_bytes());
    }

    /// Keeps a message, and sends it to whoever reads.
    pub(super) async fn emit(&self, message: Vec<u8>, last: bool) {
        let Ok(message) = String::from_utf8(message) else { return };
        let number = self.state().last + 1;
        let mut event = Vec::with_capacity(message.len() + 64);
        self.write(&mut event, number, &message);
        if let Some(store) = &self.store {
            // before it is sent: a client that got it can come back for what follows it
            store.append(&self.session, &self.name, StoredEvent::new(number, message, last)).await;
        }
        let reader = {
            let mut state = self.state();
            state.last = number;
            state.reader.clone()
        };
        if let Some(reader) = reader
            && !reader.send(event).await
        {
            self.detach(&reader);
        }
    }

    /// Who reads now.
    pub(super) fn reader(&self) -> Option<Reader> {
        self.state().reader.clone()
    }

    /// Waits until whoever reads has gone; forever if nobody does.
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
    pub(super) fn detach(&self, reader: &Reader) {
        let mut state = self.state();
        if state.reader.as_ref().is_some_and(|current| current.is(reader)) {
            state.reader = None;
        }
    }

    /// Nobody reads any more, whoever did: its connection ends with what it has got.
    pub(super) fn drop_reader(&self) {
        self.state().reader = None;
    }

    /// Attaches a connection that has got everything up to that event; the one before it ends.
    pub(super) fn attach(&self, reader: &Reader, upto: u64) -> Attached {
        let mut state = self.state();
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
        self.state().close = Some(retry);
        self.changed.notify_one();
    }

    /// Whether the connection is to be closed.
    pub(super) fn closes(&self) -> bool {
        self.state().close.is_some()
    }

    /// Closes the connection, if that was asked for and somebody reads.
    pub(super) async fn close_now(&self, primed: bool) {
        let (reader, retry) = {
            let mut state = self.state();
            let retry = state.close.take();
            let Some(reader) = state.reader.take() else { return };
            (reader, retry)
        };
        if primed {
            reader.send(self.mark(retry)).await;
        }
    }

    /// Nothing more will come: whoever reads gets to the end.
    fn end(&self) {
        let mut state = self.state();
        state.over = true;
        state.reader = None;
    }

    /// Sends a reader all that it has missed, and attaches it; a connection that could not be attached ends then.
    pub(super) async fn resume(&self, reader: &Reader, mut upto: u64) {
        loop {
            let last = self.state().last;
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

/// Appends the id of an event.
pub(super) fn write_id(out: &mut Vec<u8>, stream: &str, number: u64) {
    out.extend_from_slice(format!("id: {stream}.{number}\n").as_bytes());
}

/// What stores call a session.
pub(super) fn session_name(sid: &Sid) -> Box<str> {
    URL_SAFE_NO_PAD.encode(sid).into()
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A feed that clients can resume; dropping it ends the feed.
pub(super) struct Registered(Arc<Feed>);

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.end();
        let removed = self.0.memory().streams().remove(&self.0.name);
        drop(removed);
    }
}

/// A place among so many; dropping it leaves.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    /// `None` if all places are taken.
    pub(super) fn enter(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let enter = |n: usize| (n < limit).then_some(n + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).ok()?;
        Some(Self(taken.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_as_it_was_written() {
        let name = format!("c{}", URL_SAFE_NO_PAD.encode([0xfb; 16]));
        let id = format!("{name}.42");
        let position = Position { stream: &name, number: 42, kind: Kind::Call };
        assert_eq!(Position::read(&id), Some(position));
        let huge = format!("{name}.99999999999999999999999");
        for bad in ["", ".", "1", &name, &format!("{name}."), &format!("{name}.-1"), &format!("x{id}"), &huge]
        {
            assert_eq!(Position::read(bad), None, "{bad}");
        }
        assert_eq!(Position::read(&id.replacen('c', "x", 1)), None);
        assert_eq!(Position::read(&id.replacen('-', "é", 1)), None);
    }
}
