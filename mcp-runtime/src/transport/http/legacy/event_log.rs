//! The events that are kept for clients that come back for what they have missed: the last ones of each stream, in the
//! memory of this process. A client without room loses events of its own streams, the oldest streams first, and not those
//! of others.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    event_id::{EventId, StreamKind},
    resumable::ResumableStream,
    session_id::SessionUid,
};
use crate::core::{
    admission::{Owner, Quota, Usage},
    crypto::random_bytes,
    sync::{Mutex, MutexGuard},
};

/// Bytes of all events.
const MAX_BYTES: usize = 16 << 20;
/// Events of one stream.
const MAX_EVENTS: usize = 1024;
/// Bytes of one event, which must not cost all others of its client.
const MAX_EVENT: usize = MAX_BYTES / 4;
/// The cost of an event besides its text, with a part of that of its stream.
const OVERHEAD: usize = 512;

/// The owner of a stream, and its number.
pub(super) type StreamKey = (Owner, u64);

/// The streams of one endpoint that clients can resume.
pub(super) struct EventLogs {
    /// Tells the streams of this process from those of others, in the ids of their events.
    process: [u8; 6],
    last_stream: AtomicU64,
    table: Mutex<LogTable>,
}

/// Streams by owner, in the order in which they were opened: those that are open, and those that have ended and have events.
pub(super) struct LogTable {
    streams: BTreeMap<StreamKey, (SessionUid, Arc<ResumableStream>)>,
    bytes: Usage,
}

impl EventLogs {
    pub(super) fn new() -> Arc<Self> {
        // without randomness, no session can be started either
        let process = random_bytes().unwrap_or_default();
        let table = LogTable { streams: BTreeMap::new(), bytes: Usage::new(Quota::half(MAX_BYTES)) };
        Arc::new(Self { process, last_stream: AtomicU64::new(0), table: Mutex::new(table) })
    }

    /// The id before the first event of a new stream.
    pub(super) fn new_id(&self, kind: StreamKind) -> EventId {
        let stream = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        EventId { kind, process: self.process, stream, number: 0 }
    }

    /// Whether an event is one of this process.
    pub(super) fn has_sent(&self, id: &EventId) -> bool {
        id.process == self.process
    }

    /// Locks the table; the state of a stream may be locked after that, and not before.
    pub(super) fn lock(&self) -> MutexGuard<'_, LogTable> {
        self.table.lock()
    }

    /// The stream of an event, if the event is one of that session.
    pub(super) fn find(
        &self,
        owner: &Owner,
        session: &SessionUid,
        id: &EventId,
    ) -> Option<Arc<ResumableStream>> {
        let table = self.lock();
        let (uid, stream) = table.streams.get(&(owner.clone(), id.stream))?;
        (uid == session).then(|| stream.clone())
    }
}

impl LogTable {
    /// Adds a stream.
    pub(super) fn add(&mut self, key: &StreamKey, session: SessionUid, stream: Arc<ResumableStream>) {
        self.streams.insert(key.clone(), (session, stream));
    }

    /// Removes a stream.
    pub(super) fn remove(&mut self, key: &StreamKey) {
        self.streams.remove(key);
    }

    /// Keeps the next event of a stream, whose state is locked; one that is too large is kept without its text.
    pub(super) fn keep(&mut self, (owner, number): &StreamKey, kept: &mut KeptEvents, event: &[u8]) {
        let event = if event.len() <= MAX_EVENT {
            event
        } else {
            tracing::debug!(bytes = event.len(), "an event is too large to be kept");
            b""
        };
        self.bytes.add(owner, kept.push(event));
        if kept.events.len() > MAX_EVENTS {
            self.bytes.remove(owner, kept.pop());
        }
        loop {
            let beyond = match self.bytes.largest() {
                _ if !self.bytes.fits_share(owner, 0) => owner.clone(),
                Some(largest) if !self.bytes.fits(0) => largest.clone(),
                _ => return,
            };
            if !self.evict(&beyond, *number) {
                match kept.pop() {
                    0 => return,
                    cost => self.bytes.remove(owner, cost),
                }
            }
        }
    }

    /// Drops the events of the oldest stream of an owner that has some, other than the one of that number; `false` if there
    /// is none.
    fn evict(&mut self, owner: &Owner, except: u64) -> bool {
        let mut own = self.streams.range((owner.clone(), 0)..=(owner.clone(), u64::MAX));
        let oldest = own.find(|((_, number), (_, stream))| *number != except && stream.keeps_events());
        let Some((key, (_, stream))) = oldest else { return false };
        let (key, (dropped, is_ended)) = (key.clone(), stream.drop_events());
        self.bytes.remove(owner, dropped);
        if is_ended {
            self.streams.remove(&key);
        }
        true
    }
}

/// The last events of one stream, as text without their ids.
#[derive(Default)]
pub(super) struct KeptEvents {
    /// The number of the last event.
    pub(super) last: u64,
    events: VecDeque<Box<[u8]>>,
}

impl KeptEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events after this number, with theirs.
    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let first = self.last + 1 - self.events.len() as u64;
        (first..).zip(&self.events).filter(move |(n, _)| *n > number).map(|(n, event)| (n, &**event))
    }

    /// Adds the next event, and returns what it costs.
    fn push(&mut self, event: &[u8]) -> usize {
        self.last += 1;
        self.events.push_back(event.into());
        event.len() + OVERHEAD
    }

    /// Drops the oldest event, and returns what it has cost.
    fn pop(&mut self) -> usize {
        self.events.pop_front().map_or(0, |event| event.len() + OVERHEAD)
    }

    /// Drops all events, and returns what they have cost.
    pub(super) fn clear(&mut self) -> usize {
        std::iter::from_fn(|| (!self.is_empty()).then(|| self.pop())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::protocol::Revision;

    /// A stream of an owner, of which this many events of so many bytes are to be kept.
    fn stream(logs: &EventLogs, owner: &str, events: usize, bytes: usize) -> (Owner, EventId) {
        let (owner, id) = (Owner::principal(owner.into()), logs.new_id(StreamKind::Call));
        let (stream, key) =
            (Arc::new(ResumableStream::new(Some(id), Revision::LATEST_LEGACY)), (owner, id.stream));
        let mut table = logs.lock();
        table.add(&key, [1; 16], stream.clone());
        for _ in 0..events {
            table.keep(&key, &mut stream.state().kept, &vec![b'x'; bytes]);
        }
        drop(table);
        stream.end();
        (key.0, id)
    }

    /// The numbers of the events that are kept of a stream; none if it cannot be resumed.
    fn kept(logs: &EventLogs, (owner, id): &(Owner, EventId)) -> Option<Vec<u64>> {
        let stream = logs.find(owner, &[1; 16], id)?;
        let numbers = stream.state().kept.after(0).map(|(number, _)| number).collect();
        Some(numbers)
    }

    #[test]
    fn the_events_of_one_client_cost_no_other_client_an_event() {
        let logs = EventLogs::new();
        let bob = stream(&logs, "bob", 2, 1000);
        assert!(logs.find(&bob.0, &[2; 16], &bob.1).is_none(), "in another session");
        let large = stream(&logs, "ada", 9, 1 << 20);
        let numbers = kept(&logs, &large).expect("her newest events");
        assert_eq!((numbers.len(), numbers.last()), (7, Some(&9)), "half of all bytes");
        let many = stream(&logs, "ada", MAX_EVENTS + 5, 2000);
        assert_eq!(kept(&logs, &large), None, "her oldest stream goes first");
        assert_eq!(kept(&logs, &many).expect("the last ones")[0], 6);
        for eve in ["eve", "fay", "gus"] {
            stream(&logs, eve, 8, 1 << 20);
        }
        assert_eq!(kept(&logs, &bob), Some(vec![1, 2]));
        assert!(logs.lock().bytes.total() <= MAX_BYTES);
        let too_large = stream(&logs, "bob", 1, MAX_EVENT + 1);
        assert_eq!(
            logs.find(&bob.0, &[1; 16], &too_large.1).expect("a stream").state().kept.after(0).count(),
            1
        );
    }
}
