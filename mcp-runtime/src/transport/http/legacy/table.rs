//! What is kept of sessions, beyond what their ids say: log levels, subscriptions, streams that are open. Only of
//! those that need it, and never of too many. The HTTP transport asks it; streams hold their session's place in it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use super::{Sid, standalone::Standalone};
use crate::{
    events::{Filter, Hub, ListChanges},
    protocol::LogLevel,
    sync::Mutex,
};

/// Bytes of the URIs that all sessions together subscribe to.
const MAX_BYTES: usize = 32 << 20;
/// Bytes of one URI that is subscribed to.
const MAX_URI: usize = 8 << 10;
/// What a subscription costs beside its URI.
const OVERHEAD: usize = 128;

/// What is kept of one session.
#[derive(Debug)]
pub(crate) struct SessionMemory<S> {
    /// What it wants to be told of.
    filter: Arc<Filter>,
    /// Fires when it was ended, or the server is.
    pub(crate) ended: CancellationToken,
    /// Its standalone streams.
    pub(crate) standalone: Standalone,
    /// Its streams that can be resumed while they go on, by their names.
    pub(super) streams: Mutex<HashMap<Box<str>, S>>,
}

/// The sessions of which something is kept; `S` is what the transport keeps of a stream.
pub(crate) struct SessionTable<S> {
    limit: usize,
    hub: Hub,
    state: Mutex<TableState<S>>,
}

struct TableState<S> {
    sessions: HashMap<Sid, SessionSlot<S>>,
    /// Those without open streams, the one that has been idle for longest first.
    idle: BTreeMap<u64, Sid>,
    clock: u64,
    /// Bytes of all subscriptions.
    bytes: usize,
    ended: bool,
}

struct SessionSlot<S> {
    memory: Arc<SessionMemory<S>>,
    /// The least level of log messages that it wants.
    level: Option<LogLevel>,
    /// Streams that are open.
    open: usize,
    /// Its key among the idle ones, if none is.
    since: u64,
    /// Bytes of its subscriptions.
    bytes: usize,
}

impl<S> TableState<S> {
    /// What is kept of a session, from now on if nothing was; `None` if there is no room.
    fn slot(&mut self, sid: &Sid, limit: usize, hub: &Hub) -> Option<&mut SessionSlot<S>> {
        if self.ended {
            return None;
        }
        if !self.sessions.contains_key(sid) {
            while self.sessions.len() >= limit {
                self.evict(None)?;
            }
            self.clock += 1;
            let all = ListChanges { tools: true, prompts: true, resources: true };
            let memory = Arc::new(SessionMemory {
                filter: hub.filter(all),
                ended: CancellationToken::default(),
                standalone: Standalone::default(),
                streams: Mutex::default(),
            });
            self.idle.insert(self.clock, *sid);
            self.sessions
                .insert(*sid, SessionSlot { memory, level: None, open: 0, since: self.clock, bytes: 0 });
        }
        self.sessions.get_mut(sid)
    }

    /// Forgets the session that has been idle for longest, unless that is `but`.
    fn evict(&mut self, but: Option<&Sid>) -> Option<()> {
        let (since, sid) = self.idle.iter().find(|(_, sid)| but != Some(sid)).map(|(at, sid)| (*at, *sid))?;
        self.idle.remove(&since);
        let slot = self.sessions.remove(&sid)?;
        self.bytes -= slot.bytes;
        Some(())
    }

    /// The session is the last to be forgotten, if it is idle.
    fn touch(&mut self, sid: &Sid) {
        self.clock += 1;
        if let Some(slot) = self.sessions.get_mut(sid).filter(|slot| slot.open == 0) {
            self.idle.remove(&slot.since);
            slot.since = self.clock;
            self.idle.insert(self.clock, *sid);
        }
    }
}

impl<S> SessionTable<S> {
    /// Room for so many sessions.
    pub(crate) fn new(limit: usize, hub: Hub) -> Arc<Self> {
        let state =
            TableState { sessions: HashMap::new(), idle: BTreeMap::new(), clock: 0, bytes: 0, ended: false };
        Arc::new(Self { limit, hub, state: Mutex::new(state) })
    }

    /// Opens a stream of a session; `None` if the table is full of sessions with open streams.
    pub(crate) fn open(self: &Arc<Self>, sid: Sid) -> Option<OpenSession<S>> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let slot = state.slot(&sid, self.limit, &self.hub)?;
        let memory = slot.memory.clone();
        slot.open += 1;
        let since = (slot.open == 1).then_some(slot.since);
        if let Some(since) = since {
            state.idle.remove(&since);
        }
        Some(OpenSession { table: self.clone(), sid, memory })
    }

    /// The least level of log messages that a session wants.
    pub(crate) fn level(&self, sid: &Sid) -> Option<LogLevel> {
        self.state.lock().sessions.get(sid)?.level
    }

    /// Sets that level; `false` if there is no room to remember it.
    pub(crate) fn set_level(&self, sid: &Sid, level: LogLevel) -> bool {
        let mut state = self.state.lock();
        let Some(slot) = state.slot(sid, self.limit, &self.hub) else { return false };
        slot.level = Some(level);
        state.touch(sid);
        true
    }

    /// Subscribes a session to a resource; `false` if there is no room to remember it.
    pub(crate) fn subscribe(&self, sid: &Sid, uri: &str) -> bool {
        if uri.len() > MAX_URI {
            return false;
        }
        let mut state = self.state.lock();
        let Some(slot) = state.slot(sid, self.limit, &self.hub) else { return false };
        let filter = slot.memory.filter.clone();
        if !filter.subscribe(uri) {
            return false;
        }
        state.count(sid, &filter);
        while state.bytes > MAX_BYTES {
            if state.evict(Some(sid)).is_none() {
                filter.unsubscribe(uri);
                state.count(sid, &filter);
                return false;
            }
        }
        state.touch(sid);
        true
    }

    /// Ends that subscription.
    pub(crate) fn unsubscribe(&self, sid: &Sid, uri: &str) {
        let mut state = self.state.lock();
        if let Some(filter) = state.sessions.get(sid).map(|slot| slot.memory.filter.clone()) {
            filter.unsubscribe(uri);
            state.count(sid, &filter);
            state.touch(sid);
        }
    }

    /// Forgets a session that was ended, and closes its streams.
    pub(crate) fn end(&self, sid: &Sid) {
        let removed = {
            let mut state = self.state.lock();
            let removed = state.sessions.remove(sid);
            if let Some(slot) = &removed {
                state.idle.remove(&slot.since);
                state.bytes -= slot.bytes;
            }
            removed
        };
        if let Some(slot) = removed {
            slot.memory.ended.cancel();
        }
    }

    /// Closes the streams of all sessions, and opens none any more.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = {
            let mut state = self.state.lock();
            state.ended = true;
            state.sessions.values().map(|slot| slot.memory.clone()).collect()
        };
        for memory in all {
            memory.ended.cancel();
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        assert!(state.idle.len() <= state.sessions.len());
        state.sessions.len()
    }
}

impl<S> TableState<S> {
    /// Counts what the subscriptions of a session take.
    fn count(&mut self, sid: &Sid, filter: &Filter) {
        let Some(slot) = self.sessions.get_mut(sid) else { return };
        let (uris, bytes) = filter.size();
        let now = bytes + uris * OVERHEAD;
        self.bytes = self.bytes - slot.bytes + now;
        slot.bytes = now;
    }
}

impl<S> fmt::Debug for SessionTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTable").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<S> SessionMemory<S> {
    /// What the session wants to be told of.
    pub(crate) fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }
}

/// An open stream's place in its session: as long as there is one, the session is not forgotten.
pub(crate) struct OpenSession<S> {
    table: Arc<SessionTable<S>>,
    pub(crate) sid: Sid,
    pub(crate) memory: Arc<SessionMemory<S>>,
}

impl<S> OpenSession<S> {
    /// The hub whose changes the session may follow.
    pub(crate) fn hub(&self) -> &Hub {
        &self.table.hub
    }
}

impl<S> fmt::Debug for OpenSession<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenSession")
    }
}

impl<S> Drop for OpenSession<S> {
    fn drop(&mut self) {
        let mut guard = self.table.state.lock();
        let state = &mut *guard;
        state.clock += 1;
        // the session may have been ended since, and begun to be remembered anew
        let Some(slot) = state.sessions.get_mut(&self.sid) else { return };
        if !Arc::ptr_eq(&slot.memory, &self.memory) {
            return;
        }
        slot.open -= 1;
        if slot.open == 0 {
            slot.since = state.clock;
            state.idle.insert(state.clock, self.sid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<S> SessionTable<S> {
        fn keeps(&self, sid: &Sid) -> bool {
            self.state.lock().sessions.contains_key(sid)
        }
    }

    fn table(limit: usize) -> Arc<SessionTable<()>> {
        SessionTable::new(limit, Hub::default())
    }

    #[test]
    fn the_session_that_has_been_idle_for_longest_is_forgotten() {
        let table = table(2);
        assert!(!table.keeps(&[1; 16]) && table.level(&[1; 16]).is_none() && table.len() == 0);
        assert!(table.set_level(&[1; 16], LogLevel::Error));
        assert!(table.subscribe(&[2; 16], "x://y"));
        assert!(table.set_level(&[1; 16], LogLevel::Warning), "used last");
        assert!(table.subscribe(&[3; 16], "x://y"));
        assert_eq!(table.level(&[1; 16]), Some(LogLevel::Warning));
        assert!(!table.keeps(&[2; 16]) && table.len() == 2);
    }

    #[test]
    fn sessions_with_open_streams_are_never_forgotten() {
        let table = table(2);
        let one = table.open([1; 16]).unwrap();
        let again = table.open([1; 16]).unwrap();
        let two = table.open([2; 16]).unwrap();
        assert!(table.open([3; 16]).is_none() && !table.set_level(&[3; 16], LogLevel::Info));
        assert!(!table.subscribe(&[3; 16], "x://y"));
        drop(one);
        assert!(table.open([3; 16]).is_none(), "one of its streams is still open");
        drop(again);
        let three = table.open([3; 16]).unwrap();
        assert!(!table.keeps(&[1; 16]) && table.keeps(&[2; 16]));
        drop((two, three));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn an_ended_session_closes_its_streams_and_is_forgotten() {
        let table = table(2);
        let open = table.open([1; 16]).unwrap();
        table.end(&[1; 16]);
        assert!(open.memory.ended.is_cancelled() && table.len() == 0);
        let anew = table.open([1; 16]).unwrap();
        drop(open);
        assert!(!anew.memory.ended.is_cancelled() && table.len() == 1);
        table.end_all();
        assert!(anew.memory.ended.is_cancelled() && table.open([2; 16]).is_none());
        drop(anew);
    }

    #[test]
    fn what_sessions_subscribe_to_is_bounded_in_bytes() {
        let table = table(10_000);
        assert!(!table.subscribe(&[0; 16], &"x".repeat(MAX_URI + 1)));
        let long = |n: u32| format!("x://{n}/{}", "y".repeat(MAX_URI - 20));
        for n in 0..10_000_u32 {
            let mut sid = [0; 16];
            sid[..4].copy_from_slice(&n.to_le_bytes());
            assert!(table.subscribe(&sid, &long(n)));
        }
        let state = table.state.lock();
        assert!(state.bytes <= MAX_BYTES && state.sessions.len() < MAX_BYTES / MAX_URI + 1);
        drop(state);
        let sid = [9; 16];
        for n in 0..100 {
            assert!(table.subscribe(&sid, &long(n)));
            table.unsubscribe(&sid, &long(n));
        }
        assert_eq!(table.state.lock().sessions[&sid].bytes, 0);
    }
}
