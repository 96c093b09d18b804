//! The store of events that clients of legacy HTTP sessions may resume from.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    future::ready,
    sync::Arc,
};

use super::StoreFuture;
use crate::sync::Mutex;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its number in the stream, from 1.
    pub number: u64,
    /// A JSON-RPC message; empty at the end of a stream that ended without one.
    pub message: Arc<str>,
    /// Whether it is the last of its stream.
    pub last: bool,
}

impl StoredEvent {
    /// The event with that number.
    pub fn new(number: u64, message: impl Into<Arc<str>>, last: bool) -> Self {
        Self { number, message: message.into(), last }
    }
}

/// Keeps the events of legacy HTTP sessions, for clients that reconnect with `Last-Event-ID`.
///
/// The default store is in the server's memory. With a store that replicas share, a client can resume its streams at
/// any of them. Sessions and streams have short ids that cannot be guessed. A store may remove any event: it is not
/// sent again then. It should remove streams to which no event was added for longer than clients take to reconnect.
///
/// See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
pub trait EventStore: Send + Sync {
    /// Adds an event to a stream; the numbers of a stream increase.
    fn append<'a>(&'a self, session: &'a str, stream: &'a str, event: StoredEvent) -> StoreFuture<'a, ()>;

    /// The events of a stream with numbers above `after`, in order; `None` if the stream is unknown.
    fn read<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        after: u64,
    ) -> StoreFuture<'a, Option<Vec<StoredEvent>>>;

    /// Removes the streams of a session that has ended.
    fn forget<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()>;
}

/// The limits of the store in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventBounds {
    /// Bytes of all events.
    pub(crate) bytes: usize,
    /// Number of streams.
    pub(crate) streams: usize,
    /// Events of one stream.
    pub(crate) events: usize,
}

impl Default for EventBounds {
    fn default() -> Self {
        Self { bytes: 16 << 20, streams: 4096, events: 1024 }
    }
}

/// What an event costs beside its message.
const OVERHEAD: usize = 64;

/// MemoryEvents in memory: the streams that nothing was added to for longest go first, and of one stream its oldest events.
#[derive(Debug)]
pub(crate) struct MemoryEvents {
    bounds: EventBounds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<Box<str>, HashMap<Box<str>, Stream>>,
    /// Session and stream, by when something was added last.
    order: BTreeMap<u64, (Box<str>, Box<str>)>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Stream {
    events: VecDeque<StoredEvent>,
    bytes: usize,
    at: u64,
}

fn cost(event: &StoredEvent) -> usize {
    event.message.len() + OVERHEAD
}

impl MemoryEvents {
    pub(crate) fn new(bounds: EventBounds) -> Self {
        Self { bounds, state: Mutex::default() }
    }

    fn add(&self, session: &str, stream: &str, mut event: StoredEvent) {
        // one event must not cost everybody else theirs
        if cost(&event) > self.bounds.bytes / 4 {
            tracing::debug!(bytes = event.message.len(), "an event is too large to be kept");
            if !event.last {
                return;
            }
            event.message = "".into();
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.clock += 1;
        let at = state.clock;
        let streams = match state.sessions.get_mut(session) {
            Some(streams) => streams,
            None => state.sessions.entry(session.into()).or_default(),
        };
        let kept = match streams.get_mut(stream) {
            Some(kept) => kept,
            None => streams.entry(stream.into()).or_default(),
        };
        let names = state.order.remove(&kept.at).unwrap_or_else(|| (session.into(), stream.into()));
        state.order.insert(at, names);
        kept.at = at;
        let new = cost(&event);
        (kept.bytes, state.bytes) = (kept.bytes + new, state.bytes + new);
        kept.events.push_back(event);
        while kept.events.len() > self.bounds.events
            && let Some(old) = kept.events.pop_front()
        {
            (kept.bytes, state.bytes) = (kept.bytes - cost(&old), state.bytes - cost(&old));
        }
        while state.bytes > self.bounds.bytes || state.order.len() > self.bounds.streams {
            if !state.evict() {
                return;
            }
        }
    }

    fn after(&self, session: &str, stream: &str, after: u64) -> Option<Vec<StoredEvent>> {
        let state = self.state.lock();
        let kept = state.sessions.get(session)?.get(stream)?;
        Some(kept.events.iter().filter(|event| event.number > after).cloned().collect())
    }

    fn drop_session(&self, session: &str) {
        let mut state = self.state.lock();
        for stream in state.sessions.remove(session).into_iter().flatten().map(|(_, stream)| stream) {
            state.order.remove(&stream.at);
            state.bytes -= stream.bytes;
        }
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.state.lock();
        assert_eq!(state.sessions.values().map(HashMap::len).sum::<usize>(), state.order.len());
        (state.bytes, state.order.len())
    }
}

impl State {
    /// Forgets the stream that nothing was added to for longest; `false` if there is none.
    fn evict(&mut self) -> bool {
        let Some((_, (session, stream))) = self.order.pop_first() else { return false };
        let Some(streams) = self.sessions.get_mut(&session) else { return true };
        if let Some(stream) = streams.remove(&stream) {
            self.bytes -= stream.bytes;
        }
        if streams.is_empty() {
            self.sessions.remove(&session);
        }
        true
    }
}

impl EventStore for MemoryEvents {
    fn append<'a>(&'a self, session: &'a str, stream: &'a str, event: StoredEvent) -> StoreFuture<'a, ()> {
        self.add(session, stream, event);
        Box::pin(ready(()))
    }

    fn read<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        after: u64,
    ) -> StoreFuture<'a, Option<Vec<StoredEvent>>> {
        Box::pin(ready(self.after(session, stream, after)))
    }

    fn forget<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.drop_session(session);
        Box::pin(ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(store: &MemoryEvents, session: &str, stream: &str, after: u64) -> Option<Vec<u64>> {
        Some(store.after(session, stream, after)?.iter().map(|event| event.number).collect())
    }

    #[test]
    fn only_later_events_of_the_same_stream_come_back() {
        let store = MemoryEvents::new(EventBounds::default());
        for number in 1..=3 {
            store.add("s", "a", StoredEvent::new(number, "{}", false));
            store.add("s", "b", StoredEvent::new(number, "{}", false));
        }
        assert_eq!(numbers(&store, "s", "a", 1), Some(vec![2, 3]));
        assert_eq!(numbers(&store, "s", "a", 3), Some(vec![]));
        assert_eq!(numbers(&store, "t", "a", 0), None);
        assert_eq!(numbers(&store, "s", "c", 0), None);
        store.drop_session("s");
        assert_eq!(store.size(), (0, 0));
    }

    #[test]
    fn events_streams_and_bytes_are_bounded() {
        let store = MemoryEvents::new(EventBounds { bytes: 10 * (OVERHEAD + 100), streams: 4, events: 3 });
        for number in 1..=5 {
            store.add("s", "a", StoredEvent::new(number, "x".repeat(100), false));
        }
        assert_eq!(numbers(&store, "s", "a", 0), Some(vec![3, 4, 5]), "the oldest have gone");
        for stream in ["b", "c", "d"] {
            store.add("t", stream, StoredEvent::new(1, "x".repeat(100), false));
        }
        store.add("s", "a", StoredEvent::new(6, "x", false));
        store.add("t", "e", StoredEvent::new(1, "x", false));
        assert_eq!(numbers(&store, "t", "b", 0), None, "the longest without a new event");
        assert_eq!(numbers(&store, "s", "a", 0), Some(vec![4, 5, 6]));
        for stream in ["f", "g", "h", "i", "j"] {
            store.add("u", stream, StoredEvent::new(1, "x".repeat(300), false));
            let (bytes, streams) = store.size();
            assert!(bytes <= 10 * (OVERHEAD + 100) && streams <= 4);
        }
        let before = store.size();
        store.add("u", "k", StoredEvent::new(1, "x".repeat(1000), false));
        assert_eq!(store.size(), before, "one that is too large is not kept");
        store.add("u", "k", StoredEvent::new(2, "x".repeat(1000), true));
        let end = store.after("u", "k", 0).unwrap();
        assert_eq!(end, [StoredEvent::new(2, "", true)], "but the end of its stream is");
    }
}
