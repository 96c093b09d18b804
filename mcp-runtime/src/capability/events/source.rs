//! Reads the stream of one subscription to an event that has a source: opened where the subscription is, read no further
//! than there is room, and opened again where it was when it has ended or failed. Nothing that the stream does ends more
//! than itself.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use sha2::{Digest as _, Sha256};
use tokio::time::{Sleep, sleep};

use super::{
    EventLimits, Position,
    emit::is_event_id,
    ring::{Occurrence, ReadPosition},
    streamed::{MAX_POSITION, OpenedSource, RawEvent, RawStream},
    subscription::SeenEvent,
};
use crate::core::{
    arguments::BoxFuture,
    crypto::random_id,
    error::Failure,
    invoke::{catch_panic, discard},
    server::WeakServer,
    sync::Mutex,
};

/// Bytes of events that are read ahead.
const MAX_READ_AHEAD: usize = 1 << 20;
/// Events that are taken from a stream in one go, those that are too old among them.
const MAX_TAKEN: usize = 256;
/// After a stream has failed; the next pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Opens a stream at a position.
pub(super) type Opening = BoxFuture<Result<OpenedSource, Failure>>;

/// One stream, and what was read of it.
pub(super) struct SourceReader {
    pub(super) server: WeakServer,
    name: Box<str>,
    /// Never locked: a stream is not `Sync`, and what delivers its events is.
    state: Mutex<SourceState>,
    /// Events that were read and not yet taken, oldest first.
    pub(super) ready: VecDeque<SeenEvent>,
    bytes: usize,
    /// Where the source is after `ready`.
    pub(super) at: Option<Position>,
    /// Whether events were missed.
    pub(super) truncated: bool,
    /// Nothing more is read before it was reported.
    failure: Option<Failure>,
    /// Whether what failed was missed, and is not read again.
    failure_is_gap: bool,
    /// Whether it cannot be opened any more; asking for the event says why.
    is_lost: bool,
    /// Whether it is paused since its stream has ended.
    has_paused_at_end: bool,
    pause: Duration,
    /// The time before which events are left out, until the first one that is not.
    pub(super) floor: Option<SystemTime>,
    /// Bytes of one event.
    max_payload: usize,
    poll_interval: Duration,
}

enum SourceState {
    Closed,
    Opening(Opening),
    Open(RawStream),
    /// It is opened again after this time.
    Paused(Pin<Box<Sleep>>),
}

impl SourceReader {
    pub(super) fn new(
        server: WeakServer,
        name: &str,
        at: Option<Position>,
        truncated: bool,
        limits: &EventLimits,
    ) -> Self {
        Self {
            server,
            name: name.into(),
            state: Mutex::new(SourceState::Closed),
            ready: VecDeque::new(),
            bytes: 0,
            at,
            truncated,
            failure: None,
            failure_is_gap: false,
            is_lost: false,
            has_paused_at_end: false,
            pause: FIRST_PAUSE,
            floor: None,
            max_payload: limits.max_payload,
            poll_interval: limits.poll_interval,
        }
    }

    /// Whether there is something to take.
    pub(super) fn has_news(&self) -> bool {
        !self.ready.is_empty() || self.truncated || self.failure.is_some() || self.is_lost
    }

    /// Whether the stream has ended, and everything of it was taken.
    pub(super) fn has_ended(&self) -> bool {
        self.ready.is_empty() && self.has_paused_at_end
    }

    /// Takes the next event.
    pub(super) fn take(&mut self) -> Option<SeenEvent> {
        let event = self.ready.pop_front()?;
        self.bytes -= event.cost();
        Some(event)
    }

    /// Whether something has failed after the events that were read.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes what has failed after the events that were read.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.truncated |= std::mem::take(&mut self.failure_is_gap);
        self.failure.take()
    }

    /// Gives events back that were taken, the last one first.
    #[cfg(feature = "events-webhook")]
    pub(super) fn put_back(&mut self, event: SeenEvent) {
        self.bytes += event.cost();
        self.ready.push_front(event);
    }

    /// Opens the stream if it is not; ready once that has succeeded or failed.
    pub(super) fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
        open: &mut dyn FnMut(Option<Position>) -> Option<Opening>,
    ) -> Poll<()> {
        loop {
            match self.state.get_mut() {
                _ if self.failure.is_some() || self.is_lost => return Poll::Ready(()),
                SourceState::Open(_) => return Poll::Ready(()),
                SourceState::Paused(sleep) => {
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    // events that occurred meanwhile are not known
                    self.truncated |= self.at.is_none();
                    self.has_paused_at_end = false;
                    *self.state.get_mut() = SourceState::Closed;
                }
                SourceState::Closed => match open(self.at.clone()) {
                    Some(opening) => *self.state.get_mut() = SourceState::Opening(opening),
                    None => self.is_lost = true,
                },
                SourceState::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(opened)) => {
                        self.truncated |= opened.truncated;
                        if self.at.is_none() {
                            self.at = opened.begins_at.filter(|at| at.as_str().len() <= MAX_POSITION);
                        }
                        *self.state.get_mut() = SourceState::Open(opened.stream);
                    }
                    Poll::Ready(Err(failure)) => self.fail(failure),
                },
            }
        }
    }

    /// Reads the available events of the stream, until `most` events can be taken.
    pub(super) fn fill(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        open: &mut dyn FnMut(Option<Position>) -> Option<Opening>,
    ) {
        for _ in 0..MAX_TAKEN {
            let has_room = self.ready.len() < most && self.bytes < MAX_READ_AHEAD;
            if !has_room || self.poll_open(cx, open).is_pending() {
                return;
            }
            if self.failure.is_some() {
                return;
            }
            let SourceState::Open(stream) = self.state.get_mut() else { return };
            match catch_panic(|| Ok(stream.as_mut().poll_next(cx))) {
                Ok(Poll::Pending) => return,
                Ok(Poll::Ready(Some(Ok(event)))) => {
                    self.pause = FIRST_PAUSE;
                    self.failure = self.push(event).err();
                }
                Ok(Poll::Ready(Some(Err(error)))) => self.fail(error.into()),
                Ok(Poll::Ready(None)) => {
                    self.floor = None;
                    self.pause_for(self.poll_interval, true);
                }
                Err(panic) => self.fail(panic),
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Keeps an event until it is taken.
    ///
    /// # Errors
    /// It cannot be delivered, and is missed.
    fn push(&mut self, event: RawEvent) -> Result<(), Failure> {
        let RawEvent { json, position, id, time } = event;
        let wrong = if json.len() > self.max_payload {
            Some(format!("an event of its stream has {} bytes, and at most {}", json.len(), self.max_payload))
        } else if !json.starts_with('{') {
            Some("an event of its stream is not a JSON object".to_owned())
        } else if id.as_deref().is_some_and(|id| !is_event_id(id)) {
            Some("the id of an event of its stream is not 1 to 256 visible characters of ASCII".to_owned())
        } else if position.as_ref().is_some_and(|position| position.as_str().len() > MAX_POSITION) {
            Some(format!("a position of its stream has more than {MAX_POSITION} bytes"))
        } else {
            None
        };
        let position = position.filter(|position| position.as_str().len() <= MAX_POSITION);
        if position.is_some() {
            self.at.clone_from(&position);
        }
        if let Some(wrong) = wrong {
            self.failure_is_gap = true;
            return Err(Failure::private(wrong));
        }
        let time = time.unwrap_or_else(SystemTime::now);
        if self.floor.is_some_and(|floor| time < floor) {
            self.truncated = true;
            return Ok(());
        }
        // it bounds what has happened before, and not what comes late
        self.floor = None;
        let id = match (id, &position) {
            (Some(id), _) => id,
            (None, Some(position)) => derived_id(&self.name, position, &json),
            (None, None) => {
                let id = random_id().map_err(Failure::private)?;
                format!("evt_{id}")
            }
        };
        let occurrence = Arc::new(Occurrence::at(time, id, json, None));
        let event = SeenEvent::of_source(occurrence, ReadPosition::Source(self.at.clone()));
        self.bytes += event.cost();
        self.ready.push_back(event);
        Ok(())
    }

    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.pause_for(self.pause, false);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn pause_for(&mut self, time: Duration, has_ended: bool) {
        self.has_paused_at_end = has_ended;
        let state = SourceState::Paused(Box::pin(sleep(time)));
        // the user's destructor may panic
        discard(std::mem::replace(self.state.get_mut(), state));
    }
}

impl Drop for SourceReader {
    fn drop(&mut self) {
        discard(std::mem::replace(self.state.get_mut(), SourceState::Closed));
    }
}

/// The id of an event whose source gives it none: it is the same whenever and wherever the event is read.
fn derived_id(name: &str, position: &Position, json: &str) -> String {
    let mut hash = Sha256::new();
    for part in [name, position.as_str(), json] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("evt_{hex}")
}
