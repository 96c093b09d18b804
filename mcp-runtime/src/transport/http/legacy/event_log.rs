//! The logs of a session's streams, for clients that come back for what they have missed. In a store that replicas share,
//! each entry says which process writes the log, and which requests its stream answers.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde_json::value::RawValue;

use super::{session_id::SessionUid, sessions::unix_time};
use crate::{
    core::{
        admission::{Owner, Quota},
        config::EventBounds,
        server::PROCESS_ID,
        store::{Append, Appended, SealedStore, StoreError, Table},
    },
    transport::http::replay::StoredEvent,
};

/// Whether the event is the last of its stream.
const LAST: u8 = 1;
/// Whether the entry says who writes the log.
const HAS_ORIGIN: u8 = 2;
/// The cost of an event besides its message.
const OVERHEAD: usize = 128;

/// The logs of all streams of one endpoint.
pub(super) struct EventLogs {
    store: SealedStore,
    table: Table,
    bounds: EventBounds,
    /// The maximum size of one event.
    max_event: usize,
    /// This process, if others read the logs.
    process: Option<String>,
}

impl EventLogs {
    pub(super) fn new(
        store: &SealedStore,
        bounds: EventBounds,
        share_percent: u8,
        process: Option<String>,
    ) -> Self {
        let table = Table::new("streams", bounds.streams, bounds.bytes, share_percent);
        let share = Quota::new(bounds.bytes, share_percent).share_of(&Owner::anonymous());
        // one event must not cost all others
        Self { store: store.clone(), table, bounds, max_event: share / 2, process }
    }

    /// Whether other processes read the logs.
    pub(super) fn is_shared(&self) -> bool {
        self.process.is_some()
    }

    /// The log of a stream, which is kept until its session expires.
    pub(super) fn log(
        self: &Arc<Self>,
        uid: &SessionUid,
        stream: &str,
        owner: Owner,
        expires: u64,
    ) -> EventLog {
        let name = format!("{}/{stream}", super::resumable::store_key(uid));
        EventLog { logs: self.clone(), name, owner, expires, requests: OnceLock::new() }
    }
}

/// The log of one stream.
pub(super) struct EventLog {
    logs: Arc<EventLogs>,
    name: String,
    owner: Owner,
    /// When its session expires.
    expires: u64,
    /// A JSON array of the ids of the requests that the stream answers.
    requests: OnceLock<String>,
}

/// The outcome of adding an event to a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Logged {
    Stored,
    /// Another process has written the log meanwhile: it has found this one to be gone.
    Overtaken,
}

/// The events of a stream after a number.
pub(super) struct LoggedEvents {
    pub(super) events: Vec<StoredEvent>,
    /// Whether the stream has ended.
    pub(super) ended: bool,
    /// The number of the last event.
    pub(super) last: u64,
    pub(super) origin: Option<Origin>,
}

/// The process that writes a log, and the requests that it answers.
pub(super) struct Origin {
    pub(super) process: String,
    pub(super) requests: Vec<Box<RawValue>>,
}

impl EventLog {
    pub(super) fn is_shared(&self) -> bool {
        self.logs.is_shared()
    }

    /// Sets the ids of the requests that the stream answers, as raw JSON.
    pub(super) fn set_requests<'a>(&self, ids: impl Iterator<Item = &'a str>) {
        if self.is_shared() {
            let ids: Vec<&str> = ids.collect();
            // the calls of a stream are known once
            let _unchanged = self.requests.set(format!("[{}]", ids.join(",")));
        }
    }

    /// The entry of an event. The message is left out if it is too large.
    pub(super) fn encode(&self, message: &[u8], last: bool) -> Arc<[u8]> {
        let mut entry = Vec::with_capacity(OVERHEAD + message.len());
        entry.push(if last { LAST } else { 0 });
        if let Some(process) = &self.logs.process {
            entry[0] |= HAS_ORIGIN;
            entry.extend(process.as_bytes());
            let requests = self.requests.get().map_or("[]", String::as_str);
            let (requests, length) = match u16::try_from(requests.len()) {
                Ok(length) => (requests, length),
                Err(_) => ("[]", 2),
            };
            entry.extend(length.to_le_bytes());
            entry.extend(requests.as_bytes());
        }
        if entry.len() + message.len() + OVERHEAD <= self.logs.max_event {
            entry.extend_from_slice(message);
        } else {
            tracing::debug!(bytes = message.len(), "an event is too large to be kept");
        }
        entry.into()
    }

    /// Adds an entry as the event of that number.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn append(&self, number: u64, entry: &[u8]) -> Result<Logged, StoreError> {
        let EventLogs { store, table, bounds, .. } = &*self.logs;
        let append = Append {
            position: number,
            bytes: entry,
            owner: self.owner.as_str(),
            max_entries: bounds.events,
            max_bytes: bounds.bytes,
            expires_in: Duration::from_secs(self.expires.saturating_sub(unix_time()).max(1)),
        };
        match store.append(table, &self.name, append).await? {
            Appended::Stored => Ok(Logged::Stored),
            Appended::TooLarge => {
                tracing::debug!("an event has no place in its log");
                Ok(Logged::Overtaken)
            }
            // an operation that has failed may have been carried out
            Appended::Conflict(_) => {
                let page = store.read_after(table, &self.name, number - 1, 1).await?;
                let found = page.and_then(|page| page.entries.into_iter().next());
                let is_same = found.is_some_and(|found| found.position == number && *found.bytes == *entry);
                Ok(if is_same { Logged::Stored } else { Logged::Overtaken })
            }
        }
    }

    /// Reads the events after a number; `None` if the log does not exist.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn read_after(&self, number: u64) -> Result<Option<LoggedEvents>, StoreError> {
        let EventLogs { store, table, bounds, .. } = &*self.logs;
        // the event before says whether the stream ended with it, and who writes the log
        let limit = bounds.events.saturating_add(1);
        let Some(page) = store.read_after(table, &self.name, number.saturating_sub(1), limit).await? else {
            return Ok(None);
        };
        let mut read = LoggedEvents { events: Vec::new(), ended: false, last: page.last, origin: None };
        for entry in page.entries {
            let (event, origin) =
                decode(entry.position, entry.bytes).ok_or("an event of the store is of another version")?;
            read.ended = event.last;
            read.origin = origin.or(read.origin);
            if event.number > number {
                read.events.push(event);
            }
        }
        Ok(Some(read))
    }
}

/// The event of an entry, and who has written it.
pub(super) fn decode(number: u64, entry: Arc<[u8]>) -> Option<(StoredEvent, Option<Origin>)> {
    let (flags, rest) = entry.split_first()?;
    let (mut start, mut origin) = (1, None);
    if flags & HAS_ORIGIN != 0 {
        let (process, rest) = rest.split_at_checked(PROCESS_ID)?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length));
        let requests = serde_json::from_slice(rest.get(..length)?).ok()?;
        origin = Some(Origin { process: std::str::from_utf8(process).ok()?.to_owned(), requests });
        start += PROCESS_ID + 2 + length;
    }
    let last = flags & LAST != 0;
    Some((StoredEvent { number, entry, start, last }, origin))
}
