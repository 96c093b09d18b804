//! The last events of each type, in the memory of this process: bounded in number, bytes and age. A position in them is
//! where a subscription reads on; what has gone by then is a gap.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tokio::{sync::Notify, time::Instant};

use super::{EventLimits, PayloadFns, payload::AnyValue, shared_log::EventLog};
use crate::core::{connection::Principal, sync::Mutex, unix_time::unix_millis};

/// Whom an event is for.
pub(super) type Recipients = Arc<dyn Fn(&Principal) -> bool + Send + Sync>;

/// Something that has happened, as it was emitted.
pub(crate) struct Occurrence {
    /// `eventId` on the wire.
    pub(super) id: Box<str>,
    /// `timestamp` on the wire.
    pub(super) timestamp: Box<str>,
    /// JSON of the payload.
    pub(super) data: Box<str>,
    /// `None` for every subscriber.
    pub(super) recipients: Option<Recipients>,
    emitted: Instant,
    /// Milliseconds since 1970, by which a position of another process is found.
    pub(super) time: u64,
    /// The payload as functions take it, once one was called.
    decoded: OnceLock<Option<AnyValue>>,
}

/// The cost of an event besides its texts.
const OVERHEAD: usize = 256;

impl Occurrence {
    pub(super) fn new(id: String, data: String, recipients: Option<Recipients>) -> Self {
        Self::at(SystemTime::now(), id, data, recipients)
    }

    /// An event that occurred at that time.
    fn at(time: SystemTime, id: String, data: String, recipients: Option<Recipients>) -> Self {
        Self {
            id: id.into(),
            timestamp: timestamp(time).into(),
            data: data.into(),
            recipients,
            emitted: Instant::now(),
            time: unix_millis(time),
            decoded: OnceLock::new(),
        }
    }

    /// An event that occurred at a replica; without data, it only begins a log, and is not delivered.
    pub(super) fn logged(time: u64, id: String, data: String) -> Self {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(time.min(1 << 47));
        let age = SystemTime::now().duration_since(time).unwrap_or_default();
        let mut event = Self::at(time, id, data, None);
        event.emitted = event.emitted.checked_sub(age).unwrap_or(event.emitted);
        event
    }

    /// Whether it only holds a place.
    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The payload as functions take it; `None` if it is not one of the type.
    pub(super) fn payload(&self, payload: PayloadFns) -> Option<AnyValue> {
        self.decoded.get_or_init(|| (payload.decode)(&self.data).ok()).clone()
    }

    pub(super) fn cost(&self) -> usize {
        // the decoded value is about as large as its text
        OVERHEAD + self.id.len() + self.data.len() * 2
    }
}

/// The wire's form of a time; of one that it cannot have, that of 1970.
fn timestamp(time: SystemTime) -> String {
    // year 9999
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_millis(time.clamp(SystemTime::UNIX_EPOCH, last)).to_string()
}

/// Where a subscription reads on in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadPosition {
    /// The ring that it is of: another process has another one.
    ring: u64,
    /// How many events were emitted before.
    next: u64,
    /// When it was made, in milliseconds since 1970.
    time: u64,
}

impl ReadPosition {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Self { ring, next, time } = self;
        [ring, next, time].into_iter().flat_map(|part| part.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 24] = bytes.try_into().ok()?;
        let part = |n: usize| {
            let part = bytes.get(n * 8..n * 8 + 8).and_then(|part| part.try_into().ok());
            part.map(u64::from_le_bytes)
        };
        Some(Self { ring: part(0)?, next: part(1)?, time: part(2)? })
    }
}

/// The kept events of one type.
pub(crate) struct EventRing {
    pub(super) name: Box<str>,
    pub(super) limits: EventLimits,
    kept: Mutex<Kept>,
    changed: Notify,
    /// Where replicas share a store; known once a server has used it.
    pub(super) log: OnceLock<Option<EventLog>>,
    /// Whether it is read.
    pub(super) is_used: AtomicBool,
}

struct Kept {
    id: u64,
    /// Oldest first.
    events: VecDeque<Arc<Occurrence>>,
    /// How many have gone.
    gone: u64,
    bytes: usize,
}

impl Kept {
    fn remove_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.gone += 1;
            self.bytes -= oldest.cost();
        }
    }

    fn remove_older(&mut self, than: Duration) {
        while self.events.front().is_some_and(|oldest| oldest.emitted.elapsed() > than) {
            self.remove_oldest();
        }
    }

    /// How many were emitted.
    fn end(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    fn push(&mut self, event: Arc<Occurrence>, limits: &EventLimits) {
        self.remove_older(limits.keep_for);
        self.bytes += event.cost();
        self.events.push_back(event);
        // the newest stays, however large it is: who waits for it has not read it yet
        while self.events.len() > 1
            && (self.events.len() > limits.max_kept || self.bytes > limits.max_kept_bytes)
        {
            self.remove_oldest();
        }
    }

    fn position(&self, next: u64) -> ReadPosition {
        ReadPosition { ring: self.id, next, time: unix_millis(SystemTime::now()) }
    }

    /// Whether a position counts the events of this ring.
    fn has(&self, position: &ReadPosition) -> bool {
        position.ring == self.id
    }
}

/// The events that were read from a ring.
pub(super) struct ReadEvents {
    /// Each with how many were emitted before it.
    pub(super) events: Vec<(u64, Arc<Occurrence>)>,
    /// Whether events after the position have gone, or are too old.
    pub(super) truncated: bool,
    /// Whether there are more.
    pub(super) has_more: bool,
    /// Where to read on if none of them is left out.
    pub(super) end: u64,
}

impl EventRing {
    fn new(name: &str, limits: EventLimits) -> Self {
        // random: of two rings with the same id, cursors would be mixed up
        let id = RandomState::new().hash_one(name);
        let kept = Kept { id, events: VecDeque::new(), gone: 0, bytes: 0 };
        Self {
            name: name.into(),
            limits,
            kept: Mutex::new(kept),
            changed: Notify::new(),
            log: OnceLock::new(),
            is_used: AtomicBool::new(false),
        }
    }

    /// Keeps an event, and wakes what waits for one.
    pub(super) fn push(&self, event: Arc<Occurrence>) {
        self.kept.lock().push(event, &self.limits);
        self.changed.notify_waiters();
    }

    /// The position after every event so far.
    pub(super) fn end(&self) -> ReadPosition {
        let kept = self.kept.lock();
        kept.position(kept.end())
    }

    /// The position after this many events.
    pub(super) fn at(&self, next: u64) -> ReadPosition {
        self.kept.lock().position(next)
    }

    /// At most `most` events after a position, without those that are older than `max_age`.
    pub(super) fn read(&self, from: &ReadPosition, max_age: Option<Duration>, most: usize) -> ReadEvents {
        let mut kept = self.kept.lock();
        kept.remove_older(self.limits.keep_for);
        let (mut start, mut truncated) = if kept.has(from) && from.next <= kept.end() {
            (from.next.max(kept.gone), from.next < kept.gone)
        } else {
            // of another process: what it has emitted is not known here
            let earlier = kept.events.iter().take_while(|event| event.time <= from.time).count();
            (kept.gone + earlier as u64, true)
        };
        let index = |n: u64| usize::try_from(n - kept.gone).unwrap_or(usize::MAX);
        if let Some(max_age) = max_age {
            let young = kept.events.iter().skip(index(start));
            let skipped = young.take_while(|event| event.emitted.elapsed() > max_age).count();
            truncated |= skipped > 0;
            start += skipped as u64;
        }
        let events: Vec<_> =
            (start..).zip(kept.events.iter().skip(index(start)).take(most).cloned()).collect();
        let end = start + events.len() as u64;
        ReadEvents { has_more: end < kept.end(), events, truncated, end }
    }

    /// Waits until there is something to read after a position.
    pub(super) async fn wait(&self, from: &ReadPosition) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let kept = self.kept.lock();
                if !kept.has(from) || from.next != kept.end() {
                    return;
                }
            }
            changed.await;
        }
    }
}

/// A ring that is the end of a log.
#[cfg(feature = "shared")]
impl EventRing {
    /// Has the positions of a log from now on.
    pub(super) fn begin_log(&self, log: u64) {
        self.kept.lock().id = log;
    }

    /// The position of the next entry of the log, if any is known.
    pub(super) fn next_in_log(&self, log: u64) -> Option<u64> {
        let kept = self.kept.lock();
        (kept.id == log && kept.end() > 0).then(|| kept.end() + 1)
    }

    /// The position of the last entry that was read of the log, zero for none.
    pub(super) fn end_in_log(&self, log: u64) -> u64 {
        let kept = self.kept.lock();
        if kept.id == log { kept.end() } else { 0 }
    }

    /// Keeps an event that was appended at this position, if the ring has all before it.
    pub(super) fn push_at(&self, position: u64, event: Arc<Occurrence>) -> bool {
        {
            let mut kept = self.kept.lock();
            if kept.end() + 1 != position {
                return false;
            }
            kept.push(event, &self.limits);
        }
        self.changed.notify_waiters();
        true
    }

    /// Keeps what was read of the log, whose oldest entry has the position `first`; the position of the last entry.
    ///
    /// `is_other` says that the log is another one than the one that was read before.
    pub(super) fn take_page(
        &self,
        log: u64,
        (first, events): (u64, Vec<(u64, Occurrence)>),
        is_other: bool,
    ) -> u64 {
        let end = {
            let mut kept = self.kept.lock();
            let begins = events.first().map_or(first, |(position, _)| *position);
            // what this replica has not seen is a gap
            if kept.end() + 1 < begins || is_other {
                kept.id = log;
                kept.events.clear();
                (kept.gone, kept.bytes) = (begins.saturating_sub(1), 0);
            }
            for (position, event) in events {
                if position == kept.end() + 1 {
                    kept.push(Arc::new(event), &self.limits);
                }
            }
            kept.end()
        };
        self.changed.notify_waiters();
        end
    }
}

/// The rings of a server, by event; they stay when its items change.
#[derive(Default)]
pub(crate) struct EventRings {
    rings: Mutex<HashMap<usize, Arc<EventRing>>>,
    /// Whether a task keeps them at the ends of their logs.
    pub(super) is_followed: AtomicBool,
}

impl EventRings {
    /// The ring of an event; its name is the same at every replica.
    pub(super) fn of(&self, key: usize, name: &str, limits: &EventLimits) -> Arc<EventRing> {
        let mut rings = self.rings.lock();
        let new = || Arc::new(EventRing::new(name, limits.clone()));
        rings.entry(key).or_insert_with(new).clone()
    }

    /// The ring of an event that the server has offered.
    pub(super) fn find(&self, key: usize) -> Option<Arc<EventRing>> {
        self.rings.lock().get(&key).cloned()
    }

    /// The rings that have readers.
    pub(super) fn used(&self) -> Vec<Arc<EventRing>> {
        let rings = self.rings.lock();
        rings.values().filter(|ring| ring.is_used.load(Ordering::Relaxed)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;

    use super::*;

    fn limits() -> EventLimits {
        EventLimits::new().max_kept(3).keep_for(Duration::from_secs(60))
    }

    fn new_ring(limits: EventLimits) -> EventRing {
        EventRing::new("test", limits)
    }

    fn event(n: usize) -> Arc<Occurrence> {
        Arc::new(Occurrence::new(n.to_string(), format!(r#"{{"n":{n}}}"#), None))
    }

    fn ids(read: &ReadEvents) -> Vec<&str> {
        read.events.iter().map(|(_, event)| &*event.id).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_events_go_by_number_by_bytes_and_by_age_and_leave_a_gap() {
        let ring = new_ring(limits());
        let start = ring.end();
        for n in 0..3 {
            ring.push(event(n));
        }
        let read = ring.read(&start, None, 2);
        assert_eq!((ids(&read), read.truncated, read.has_more), (vec!["0", "1"], false, true));
        let read = ring.read(&ring.at(read.end), None, 2);
        assert_eq!((ids(&read), read.truncated, read.has_more), (vec!["2"], false, false));
        ring.push(event(3));
        let read = ring.read(&start, None, 9);
        assert_eq!((ids(&read), read.truncated), (vec!["1", "2", "3"], true), "one of four has gone");
        tokio::time::advance(Duration::from_secs(61)).await;
        let read = ring.read(&start, None, 9);
        assert!(read.events.is_empty() && read.truncated);
        assert!(!ring.read(&ring.end(), None, 9).truncated, "nothing after the end has gone");

        let ring = new_ring(EventLimits { max_kept_bytes: 3 * OVERHEAD, ..limits() });
        let start = ring.end();
        for n in 0..3 {
            ring.push(event(n));
        }
        assert_eq!(ids(&ring.read(&start, None, 9)), ["1", "2"]);
        ring.push(Arc::new(Occurrence::new("large".into(), " ".repeat(4 * OVERHEAD), None)));
        assert_eq!(ids(&ring.read(&start, None, 9)), ["large"], "the newest is kept, however large");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_older_than_asked_for_is_left_out_as_a_gap() {
        let ring = new_ring(limits());
        let start = ring.end();
        ring.push(event(0));
        tokio::time::advance(Duration::from_secs(10)).await;
        ring.push(event(1));
        let read = ring.read(&start, Some(Duration::from_secs(5)), 9);
        assert_eq!((ids(&read), read.truncated), (vec!["1"], true));
        let read = ring.read(&start, Some(Duration::from_secs(20)), 9);
        assert_eq!((ids(&read), read.truncated), (vec!["0", "1"], false));
    }

    #[test]
    fn a_position_of_another_process_is_found_by_its_time_and_says_that_there_is_a_gap() {
        let here = new_ring(limits());
        for time in [1000, 1010] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(time);
            here.push(Arc::new(Occurrence::at(at, time.to_string(), "{}".into(), None)));
        }
        let position = ReadPosition { ring: !here.end().ring, next: 7, time: 1005 };
        assert_eq!(ReadPosition::from_bytes(&position.to_bytes()), Some(position));
        let read = here.read(&position, None, 9);
        assert_eq!((ids(&read), read.truncated), (vec!["1010"], true));
        for bytes in [&[][..], &[1; 23], &[1; 25]] {
            assert_eq!(ReadPosition::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_payload_is_decoded_once() {
        let payload = super::super::event_payload::<serde_json::Value>().functions;
        let event = event(7);
        let (one, other) = (event.payload(payload).unwrap(), event.payload(payload).unwrap());
        let address = |value: &Arc<dyn Any + Send + Sync>| Arc::as_ptr(value).cast::<()>();
        assert_eq!(address(&one), address(&other));
    }
}
