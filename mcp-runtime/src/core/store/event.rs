//! The store of events that clients of legacy HTTP sessions may resume from.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    future::ready,
    sync::Arc,
};

use super::StoreFuture;
use crate::core::{
    admission::{Owner, Quota, Usage},
    sync::Mutex,
};

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
    /// Whose share of the store it uses, for stores that limit each client: a digest of the principal, or an address.
    pub share: Arc<str>,
}

impl StoredEvent {
    /// The event with that number.
    pub fn new(number: u64, message: impl Into<Arc<str>>, last: bool) -> Self {
        Self { number, message: message.into(), last, share: Owner::local().as_str().clone() }
    }

    /// Sets whose share of the store it uses.
    #[must_use]
    pub fn with_share(mut self, share: impl Into<Arc<str>>) -> Self {
        self.share = share.into();
        self
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
    /// How much of the bytes and streams one owner may use.
    pub(crate) share_percent: u8,
}

impl Default for EventBounds {
    fn default() -> Self {
        Self { bytes: 16 << 20, streams: 4096, events: 1024, share_percent: 50 }
    }
}

/// What an event costs beside its message.
const OVERHEAD: usize = 64;

/// The store in memory. Of an owner that has used its share, the streams that nothing was added to for longest go first;
/// where that is one stream, its oldest events. If the store is full, they go of the owner that uses most.
#[derive(Debug)]
pub(crate) struct MemoryEvents {
    bounds: EventBounds,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sessions: HashMap<Box<str>, HashMap<Box<str>, Stream>>,
    /// Session and stream, by owner and when something was added last.
    order: BTreeMap<(Owner, u64), (Box<str>, Box<str>)>,
    clock: u64,
    bytes: Usage,
    streams: Usage,
}

#[derive(Debug)]
struct Stream {
    owner: Owner,
    events: VecDeque<StoredEvent>,
    bytes: usize,
    at: u64,
}

fn cost(event: &StoredEvent) -> usize {
    event.message.len() + OVERHEAD
}

impl MemoryEvents {
    pub(crate) fn new(bounds: EventBounds) -> Self {
        let usage = |limit| Usage::new(Quota::new(limit, bounds.share_percent));
        let state = State {
            sessions: HashMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            bytes: usage(bounds.bytes),
            streams: usage(bounds.streams),
        };
        Self { bounds, state: Mutex::new(state) }
    }

    fn add(&self, session: &str, stream: &str, mut event: StoredEvent) {
        // one event must not cost all others
        let share = Quota::new(self.bounds.bytes, self.bounds.share_percent);
        if cost(&event) > share.share_of(&Owner::anonymous()) / 2 {
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
        let kept = streams.entry(stream.into()).or_insert_with(|| {
            let owner = Owner::from_text(event.share.clone());
            state.streams.add(&owner, 1);
            Stream { owner, events: VecDeque::new(), bytes: 0, at: 0 }
        });
        let owner = kept.owner.clone();
        let names = state.order.remove(&(owner.clone(), kept.at));
        state.order.insert((owner.clone(), at), names.unwrap_or_else(|| (session.into(), stream.into())));
        kept.at = at;
        let new = cost(&event);
        kept.bytes += new;
        state.bytes.add(&owner, new);
        kept.events.push_back(event);
        while kept.events.len() > self.bounds.events && kept.drop_first(&mut state.bytes) {}
        while !state.bytes.fits_share(&owner, 0) || !state.streams.fits_share(&owner, 0) {
            if !state.evict(&owner) {
                break;
            }
        }
        while let Some(largest) = match (state.bytes.fits(0), state.streams.fits(0)) {
            (false, _) => state.bytes.largest().cloned(),
            (true, false) => state.streams.largest().cloned(),
            (true, true) => None,
        } {
            if !state.evict(&largest) {
                break;
            }
        }
    }

    fn after(&self, session: &str, stream: &str, after: u64) -> Option<Vec<StoredEvent>> {
        let state = self.state.lock();
        let kept = state.sessions.get(session)?.get(stream)?;
        Some(kept.events.iter().filter(|event| event.number > after).cloned().collect())
    }

    fn drop_session(&self, session: &str) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        for stream in state.sessions.remove(session).into_iter().flatten().map(|(_, stream)| stream) {
            state.bytes.remove(&stream.owner, stream.bytes);
            state.streams.remove(&stream.owner, 1);
            state.order.remove(&(stream.owner, stream.at));
        }
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.state.lock();
        let streams = state.sessions.values().map(HashMap::len).sum::<usize>();
        assert_eq!((streams, streams), (state.order.len(), state.streams.total()));
        (state.bytes.total(), streams)
    }
}

impl Stream {
    /// Drops the oldest event; `false` if there is none.
    fn drop_first(&mut self, bytes: &mut Usage) -> bool {
        let Some(old) = self.events.pop_front() else { return false };
        self.bytes -= cost(&old);
        bytes.remove(&self.owner, cost(&old));
        true
    }
}

impl State {
    /// Forgets the stream of an owner that nothing was added to for longest, or the first event of its only stream;
    /// `false` if there is nothing to forget.
    fn evict(&mut self, owner: &Owner) -> bool {
        let mut own = self.order.range((owner.clone(), 0)..=(owner.clone(), u64::MAX));
        let Some((oldest, (session, stream))) = own.next() else { return false };
        if own.next().is_none()
            && self.streams.fits_share(owner, 0)
            && self.streams.fits(0)
            && let Some(kept) = self.sessions.get_mut(session).and_then(|streams| streams.get_mut(stream))
            && kept.events.len() > 1
        {
            return kept.drop_first(&mut self.bytes);
        }
        let oldest = oldest.clone();
        let Some((session, stream)) = self.order.remove(&oldest) else { return false };
        let Some(streams) = self.sessions.get_mut(&session) else { return true };
        if let Some(stream) = streams.remove(&stream) {
            self.bytes.remove(owner, stream.bytes);
            self.streams.remove(owner, 1);
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
        let store = MemoryEvents::new(EventBounds {
            bytes: 10 * (OVERHEAD + 100),
            streams: 4,
            events: 3,
            share_percent: 100,
        });
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
    #[test]
    fn the_events_of_one_owner_cost_no_other_owner_an_event() {
        let store =
            MemoryEvents::new(EventBounds { bytes: 40_000, streams: 100, events: 100, share_percent: 50 });
        let event = |number, share: &str| StoredEvent::new(number, "x".repeat(1000), false).with_share(share);
        store.add("bob", "b", event(1, "192.0.2.2"));
        for number in 1..=60 {
            store.add("ada", "a", event(number, "192.0.2.1"));
        }
        for stream in 0..200 {
            store.add("eve", &stream.to_string(), event(1, "192.0.2.3"));
        }
        assert_eq!(numbers(&store, "bob", "b", 0), Some(vec![1]));
        let kept = numbers(&store, "ada", "a", 0).expect("her own newest events");
        assert!(kept.len() > 10 && kept.last() == Some(&60), "{kept:?}");
        let (bytes, streams) = store.size();
        assert!(bytes <= 40_000 && streams <= 52);
        for session in ["ada", "bob", "eve"] {
            store.drop_session(session);
        }
        assert_eq!(store.size(), (0, 0));
    }
}
