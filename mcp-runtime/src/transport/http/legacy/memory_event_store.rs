//! The default event store: keeps the events of resumable streams in memory, within bounds on events, streams and
//! bytes.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    future::ready,
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use crate::store::{EventBounds, EventStore, StoredEvent};

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Bytes that an event costs in addition to its message.
const OVERHEAD: usize = 64;

/// Keeps events in memory. The least recently extended streams are evicted first, and the oldest events of each stream.
#[derive(Debug)]
pub(crate) struct MemoryEventStore {
    bounds: EventBounds,
    state: Mutex<StoredStreams>,
}

#[derive(Debug, Default)]
struct StoredStreams {
    sessions: HashMap<Box<str>, HashMap<Box<str>, StoredStream>>,
    /// Session and stream, by the time of the last event.
    order: BTreeMap<u64, (Box<str>, Box<str>)>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct StoredStream {
    events: VecDeque<StoredEvent>,
    bytes: usize,
    /// The time of the last event, the key in `order`.
    time: u64,
}

fn cost(event: &StoredEvent) -> usize {
    event.message.len() + OVERHEAD
}

impl MemoryEventStore {
    pub(crate) fn new(bounds: EventBounds) -> Self {
        Self { bounds, state: Mutex::default() }
    }

    fn add(&self, session: &str, stream: &str, mut event: StoredEvent) {
        // one event must not evict the events of all other streams
        if cost(&event) > self.bounds.bytes / 4 {
            tracing::debug!(bytes = event.message.len(), "an event is too large to be stored");
            if !event.last {
                return;
            }
            event.message = "".into();
        }
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        state.clock += 1;
        let time = state.clock;
        let streams = match state.sessions.get_mut(session) {
            Some(streams) => streams,
            None => state.sessions.entry(session.into()).or_default(),
        };
        let stored = match streams.get_mut(stream) {
            Some(stored) => stored,
            None => streams.entry(stream.into()).or_default(),
        };
        let names = state.order.remove(&stored.time).unwrap_or_else(|| (session.into(), stream.into()));
        state.order.insert(time, names);
        stored.time = time;
        let new = cost(&event);
        (stored.bytes, state.bytes) = (stored.bytes + new, state.bytes + new);
        stored.events.push_back(event);
        while stored.events.len() > self.bounds.events
            && let Some(old) = stored.events.pop_front()
        {
            (stored.bytes, state.bytes) = (stored.bytes - cost(&old), state.bytes - cost(&old));
        }
        while state.bytes > self.bounds.bytes || state.order.len() > self.bounds.streams {
            if !state.evict() {
                return;
            }
        }
    }

    fn events_after(&self, session: &str, stream: &str, number: u64) -> Option<Vec<StoredEvent>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = state.sessions.get(session)?.get(stream)?;
        Some(stored.events.iter().filter(|event| event.number > number).cloned().collect())
    }

    fn drop_session(&self, session: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in state.sessions.remove(session).into_iter().flatten().map(|(_, stream)| stream) {
            state.order.remove(&stream.time);
            state.bytes -= stream.bytes;
        }
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        assert_eq!(state.sessions.values().map(HashMap::len).sum::<usize>(), state.order.len());
        (state.bytes, state.order.len())
    }
}

impl StoredStreams {
    /// Removes the least recently extended stream; `false` if no stream is stored.
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

impl EventStore for MemoryEventStore {
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
        Box::pin(ready(self.events_after(session, stream, after)))
    }

    fn forget<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.drop_session(session);
        Box::pin(ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(store: &MemoryEventStore, session: &str, stream: &str, after: u64) -> Option<Vec<u64>> {
        Some(store.events_after(session, stream, after)?.iter().map(|event| event.number).collect())
    }

    #[test]
    fn only_later_events_of_the_same_stream_are_read() {
        let store = MemoryEventStore::new(EventBounds::default());
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
        let store =
            MemoryEventStore::new(EventBounds { bytes: 10 * (OVERHEAD + 100), streams: 4, events: 3 });
        for number in 1..=5 {
            store.add("s", "a", StoredEvent::new(number, "x".repeat(100), false));
        }
        assert_eq!(numbers(&store, "s", "a", 0), Some(vec![3, 4, 5]), "the oldest are evicted");
        for stream in ["b", "c", "d"] {
            store.add("t", stream, StoredEvent::new(1, "x".repeat(100), false));
        }
        store.add("s", "a", StoredEvent::new(6, "x", false));
        store.add("t", "e", StoredEvent::new(1, "x", false));
        assert_eq!(numbers(&store, "t", "b", 0), None, "the least recently extended stream is evicted");
        assert_eq!(numbers(&store, "s", "a", 0), Some(vec![4, 5, 6]));
        for stream in ["f", "g", "h", "i", "j"] {
            store.add("u", stream, StoredEvent::new(1, "x".repeat(300), false));
            let (bytes, streams) = store.size();
            assert!(bytes <= 10 * (OVERHEAD + 100) && streams <= 4);
        }
        let before = store.size();
        store.add("u", "k", StoredEvent::new(1, "x".repeat(1000), false));
        assert_eq!(store.size(), before, "an event that is too large is not stored");
        store.add("u", "k", StoredEvent::new(2, "x".repeat(1000), true));
        let last = store.events_after("u", "k", 0).unwrap();
        assert_eq!(last, [StoredEvent::new(2, "", true)], "but the end of its stream is");
    }
}
