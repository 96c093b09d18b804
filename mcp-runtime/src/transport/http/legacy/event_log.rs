//! The logs of a session's streams, for clients that come back for what they have missed: a ring of events for each stream,
//! in the memory of this process.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::time::Instant;

use super::{
    event_id::{EventId, StreamKind},
    session_id::SessionUid,
    sessions::unix_time,
};
use crate::{
    core::{
        admission::{Owner, Quota},
        config::EventBounds,
        crypto::random_bytes,
        store::{Append, Appended, MemoryLogs, Table},
        sync::Mutex,
    },
    transport::http::replay::StoredEvent,
};

/// The cost of an event besides its message.
const OVERHEAD: usize = 128;

/// The logs of all streams of one endpoint.
pub(super) struct EventLogs {
    logs: Mutex<MemoryLogs>,
    table: Table,
    bounds: EventBounds,
    /// The maximum size of one event.
    max_event: usize,
    /// Tells the streams of this process from those of others, in their names.
    process: [u8; 6],
}

impl EventLogs {
    pub(super) fn new(bounds: EventBounds, share_percent: u8) -> Self {
        let table = Table::new("streams", bounds.streams, bounds.bytes, share_percent);
        let share = Quota::new(bounds.bytes, share_percent).share_of(&Owner::anonymous());
        // without randomness, streams cannot be named either
        let process = random_bytes().unwrap_or_default();
        // one event must not cost all others
        let logs = Mutex::new(MemoryLogs::new(&table));
        Self { logs, table, bounds, max_event: share / 2, process }
    }

    /// The name of a new stream; `None` if the operating system provides no randomness.
    pub(super) fn new_name(&self, kind: StreamKind) -> Option<Box<str>> {
        kind.new_name(self.process)
    }

    /// Whether an event is one of this process.
    pub(super) fn has_sent(&self, id: &EventId<'_>) -> bool {
        id.is_of(self.process)
    }

    /// The log of a stream, which is kept until its session expires.
    pub(super) fn log(
        self: &Arc<Self>,
        uid: &SessionUid,
        stream: &str,
        owner: Owner,
        expires: u64,
    ) -> EventLog {
        let name = format!("{}/{stream}", URL_SAFE_NO_PAD.encode(uid));
        EventLog { logs: self.clone(), name, owner, expires }
    }
}

/// The log of one stream.
pub(super) struct EventLog {
    logs: Arc<EventLogs>,
    name: String,
    owner: Owner,
    /// When its session expires.
    expires: u64,
}

/// The events of a stream after a number.
pub(super) struct LoggedEvents {
    pub(super) events: Vec<StoredEvent>,
    /// Whether the stream has ended.
    pub(super) ended: bool,
}

impl EventLog {
    /// Adds a message as the event of that number, and removes the oldest events that it leaves no room for. A message that
    /// is too large is left out of its event.
    pub(super) fn append(&self, number: u64, message: &[u8], last: bool) {
        let EventLogs { logs, table, bounds, max_event, .. } = &*self.logs;
        let message = if message.len().saturating_add(OVERHEAD) <= *max_event {
            message
        } else {
            tracing::debug!(bytes = message.len(), "an event is too large to be kept");
            b""
        };
        let append = Append {
            position: number,
            bytes: &StoredEvent::entry(message, last),
            owner: self.owner.as_str(),
            max_entries: bounds.events,
            max_bytes: bounds.bytes,
            expires_in: Duration::from_secs(self.expires.saturating_sub(unix_time()).max(1)),
        };
        if logs.lock().append(Instant::now(), table, &self.name, &append) != Appended::Stored {
            tracing::debug!("an event has no place in its log");
        }
    }

    /// Reads the events after a number; `None` if the log does not exist.
    pub(super) fn read_after(&self, number: u64) -> Option<LoggedEvents> {
        let EventLogs { logs, bounds, .. } = &*self.logs;
        // the event before says whether the stream ended with it
        let limit = bounds.events.saturating_add(1);
        let page = logs.lock().read_after(Instant::now(), &self.name, number.saturating_sub(1), limit)?;
        let entries = page.entries.into_iter();
        let mut events: Vec<_> =
            entries.map(|entry| StoredEvent { number: entry.position, entry: entry.bytes }).collect();
        let ended = events.last().is_some_and(StoredEvent::is_last);
        events.retain(|event| event.number > number);
        Some(LoggedEvents { events, ended })
    }
}
