//! The events of a stream that a client has missed, one after the other: the text of a large one is that of the store and
//! is not copied. The remaining events are charged to the client.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::body::Bytes;

use super::{
    response_body::charged,
    sse::{StreamDeadline, write_event, write_event_start},
};
use crate::core::admission::Permit;

/// Bytes of a message up to which it is copied, since a separate part would cost more.
const MAX_COPIED: usize = 4 << 10;
/// Bytes that an event is charged in addition to its message.
const OVERHEAD: usize = 64;

/// An event of a stream, as its log has it.
#[derive(Debug, Clone)]
pub(super) struct StoredEvent {
    /// Its number in the stream.
    pub(super) number: u64,
    /// Whether it is the last of its stream, and its message.
    pub(super) entry: Arc<[u8]>,
}

impl StoredEvent {
    /// The entry of a log.
    pub(super) fn entry(message: &[u8], last: bool) -> Vec<u8> {
        let mut entry = Vec::with_capacity(1 + message.len());
        entry.push(last.into());
        entry.extend_from_slice(message);
        entry
    }

    /// A JSON-RPC message; empty if the event has none.
    pub(super) fn message(&self) -> &[u8] {
        self.entry.get(1..).unwrap_or_default()
    }

    /// Whether it is the last of its stream.
    pub(super) fn is_last(&self) -> bool {
        self.entry.first() == Some(&1)
    }
}

/// Events that are sent again, and then end.
pub(super) struct Replay {
    /// The name of the stream.
    stream: Box<str>,
    events: VecDeque<StoredEvent>,
    /// The parts of the event that is being sent.
    parts: VecDeque<Bytes>,
    permit: Permit,
    end: StreamDeadline,
}

/// The text of a message, which others share, and which stays charged until it is written: its store may have removed it.
struct SharedText {
    event: StoredEvent,
    _permit: Permit,
}

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.event.message()
    }
}

/// The cost of events that wait to be sent again.
pub(super) fn replay_cost(events: &[StoredEvent]) -> usize {
    events.iter().map(|event| event.message().len() + OVERHEAD).sum()
}

/// Appends the `id` field of an event.
pub(super) fn write_event_id(out: &mut Vec<u8>, stream: &str, number: u64) {
    out.extend_from_slice(format!("id: {stream}.{number}\n").as_bytes());
}

impl Replay {
    /// `permit` is for the [cost](replay_cost) of the events, which are sent until `end` completes.
    /// The text of `start` comes first.
    pub(super) fn new(
        stream: &str,
        (start, events): (Vec<u8>, Vec<StoredEvent>),
        permit: Permit,
        end: StreamDeadline,
    ) -> Self {
        let parts = if start.is_empty() { VecDeque::new() } else { VecDeque::from([start.into()]) };
        Self { stream: stream.into(), events: events.into(), parts, permit, end }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.parts.is_empty() && self.events.is_empty()
    }

    /// The next part of the text.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.is_finished()
            && let Poll::Ready(final_text) = Pin::new(&mut self.end).poll(cx)
        {
            // the rest of an event that was sent in part is missing, so that clients ignore it
            let is_between_events = self.parts.is_empty();
            self.events.clear();
            self.parts.clear();
            let final_text = Some(final_text).filter(|text| is_between_events && !text.is_empty());
            return Poll::Ready(final_text.map(Bytes::from_static));
        }
        while self.parts.is_empty()
            && let Some(event) = self.events.pop_front()
        {
            self.write(event);
        }
        Poll::Ready(self.parts.pop_front())
    }

    fn write(&mut self, event: StoredEvent) {
        let message = event.message();
        let permit = self.permit.split(message.len() + OVERHEAD);
        if message.is_empty() {
            return;
        }
        let mut start = Vec::with_capacity(64);
        write_event_id(&mut start, &self.stream, event.number);
        // a store may have kept what is not one line
        if message.len() <= MAX_COPIED || memchr::memchr2(b'\n', b'\r', message).is_some() {
            write_event(&mut start, message);
            return self.parts.push_back(charged(start, Some(permit)));
        }
        write_event_start(&mut start);
        let text = Bytes::from_owner(SharedText { event, _permit: permit });
        self.parts.extend([start.into(), text, Bytes::from_static(b"\n\n")]);
    }
}
