//! The logs of a session's streams, for clients that come back for what they have missed: a ring of events for each stream,
//! in the memory of this process.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::time::Instant;

use super::{
    event_id::{EventId, StreamKind},
    event_sender::EventSender,
    session_id::SessionUid,
    sessions::unix_time,
};
use crate::{
    core::{
        admission::{HALF, Owner, Permit, Quota},
        connection::Outbound,
        crypto::random_bytes,
        store::{Append, Appended, LogEntry, MemoryLogs, Table},
        sync::Mutex,
    },
    transport::http::sse::write_event,
};

/// Bytes of all events.
const MAX_BYTES: usize = 16 << 20;
/// Streams with events.
const MAX_STREAMS: usize = 4096;
/// Events of one stream.
const MAX_EVENTS: usize = 1024;
/// The cost of an event besides its message.
const OVERHEAD: usize = 128;
/// Bytes that an event is charged besides its message while it waits to be sent again.
const MISSED_OVERHEAD: usize = 64;

/// The logs of all streams of one endpoint.
pub(super) struct EventLogs {
    logs: Mutex<MemoryLogs>,
    table: Table,
    /// The maximum size of one event.
    max_event: usize,
    /// Tells the streams of this process from those of others, in their names.
    process: [u8; 6],
}

impl EventLogs {
    pub(super) fn new() -> Self {
        let table = Table::new("streams", MAX_STREAMS, MAX_BYTES, HALF);
        let share = Quota::half(MAX_BYTES).share_of(&Owner::anonymous());
        // without randomness, streams cannot be named either
        let process = random_bytes().unwrap_or_default();
        // one event must not cost all others
        let logs = Mutex::new(MemoryLogs::new(&table));
        Self { logs, table, max_event: share / 2, process }
    }

    /// Whether an event is one of this process.
    pub(super) fn has_sent(&self, id: &EventId<'_>) -> bool {
        id.is_of(self.process)
    }

    /// The log of a new stream; `None` if the operating system provides no randomness for its name.
    pub(super) fn new_log(
        self: &Arc<Self>,
        kind: StreamKind,
        uid: &SessionUid,
        owner: Owner,
        expires: u64,
    ) -> Option<EventLog> {
        Some(self.log(uid, &kind.new_name(self.process)?, owner, expires))
    }

    /// The log of a stream, which is kept until its session expires.
    pub(super) fn log(
        self: &Arc<Self>,
        uid: &SessionUid,
        stream: &str,
        owner: Owner,
        expires: u64,
    ) -> EventLog {
        let key = format!("{}/{stream}", URL_SAFE_NO_PAD.encode(uid));
        EventLog { logs: self.clone(), stream: stream.into(), key, owner, expires }
    }
}

/// The log of one stream.
pub(super) struct EventLog {
    logs: Arc<EventLogs>,
    /// The name of the stream.
    pub(super) stream: Box<str>,
    /// The name of the log.
    key: String,
    owner: Owner,
    /// When its session expires.
    expires: u64,
}

impl EventLog {
    /// Adds a message as the event of that number, and removes the oldest events that it leaves no room for. A message that
    /// is too large is left out of its event.
    pub(super) fn append(&self, number: u64, message: &[u8]) {
        let EventLogs { logs, table, max_event, .. } = &*self.logs;
        let message = if message.len().saturating_add(OVERHEAD) <= *max_event {
            message
        } else {
            tracing::debug!(bytes = message.len(), "an event is too large to be kept");
            b""
        };
        let append = Append {
            position: number,
            bytes: message,
            owner: self.owner.as_str(),
            max_entries: MAX_EVENTS,
            max_bytes: MAX_BYTES,
            expires_in: Duration::from_secs(self.expires.saturating_sub(unix_time()).max(1)),
        };
        if logs.lock().append(Instant::now(), table, &self.key, &append) != Appended::Stored {
            tracing::debug!("an event has no place in its log");
        }
    }

    /// Reads the events after a number; `None` if the log does not exist.
    pub(super) fn read_after(&self, number: u64) -> Option<Vec<LogEntry>> {
        let mut logs = self.logs.logs.lock();
        let page = logs.read_after(Instant::now(), &self.key, number, MAX_EVENTS)?;
        Some(page.entries)
    }
}

/// Events that a client has missed, which are charged to it until they are sent.
pub(super) struct MissedEvents {
    stream: Box<str>,
    events: Vec<LogEntry>,
    permit: Permit,
}

impl MissedEvents {
    /// Those of a stream that have messages; `None` if their reader leaves too many bytes unread.
    pub(super) fn new(stream: &str, mut events: Vec<LogEntry>, reader: &Outbound) -> Option<Self> {
        events.retain(|event| !event.bytes.is_empty());
        let permit = reader.charge(events.iter().map(Self::cost).sum())?;
        Some(Self { stream: stream.into(), events, permit })
    }

    fn cost(event: &LogEntry) -> usize {
        event.bytes.len() + MISSED_OVERHEAD
    }

    /// Sends them, one after the other; `false` if the client has disconnected.
    pub(super) async fn send(mut self, sender: &EventSender) -> bool {
        for event in self.events {
            let held = self.permit.split(Self::cost(&event));
            if !sender.wait_for_capacity().await {
                return false;
            }
            let mut out = Vec::with_capacity(event.bytes.len() + 64);
            write_event_id(&mut out, &self.stream, event.position);
            write_event(&mut out, &event.bytes);
            if !sender.send(out, Some(held)).await {
                return false;
            }
        }
        true
    }
}

/// Appends the `id` field of an event.
pub(super) fn write_event_id(out: &mut Vec<u8>, stream: &str, number: u64) {
    out.extend_from_slice(format!("id: {stream}.{number}\n").as_bytes());
}
