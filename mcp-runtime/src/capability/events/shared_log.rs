//! The events of a server with a shared store: each type is a log that all replicas append to, and each replica keeps the
//! end of it in its ring, from which its subscriptions read. An event that was appended reaches every replica once, at the
//! same position, so that a cursor of one is read by another. While the store cannot be used, nothing is emitted.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::{
    EventLimits,
    ring::{EventRing, EventRings, Occurrence},
};
use crate::core::{
    server::{Error, Result, Server, WeakServer},
    spawn::spawn,
    store::{Append, Appended, Listener, LogPage, Received, SealedStore, StoreError, Table},
    unix_time::unix_millis,
};

/// Types of events, as a store has them.
const MAX_LOGS: usize = 10_000;
/// Bytes of the events of all types.
const MAX_LOG_BYTES: usize = 256 << 20;
/// Entries that are read of a log in one go.
const PAGE: usize = 256;
/// How often an event that other replicas have overtaken is appended again.
const MAX_ATTEMPTS: usize = 100;
/// The least time that a log of which nothing happens is kept.
const KEPT_IDLE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A new log begins above every position of an earlier one: at the time in milliseconds, times this.
const PER_MILLISECOND: u64 = 1000;
const TOPIC: &str = "events";
/// How often logs are read without being told to.
const CHECK: Duration = Duration::from_secs(5);

/// The log of one type of event.
pub(super) struct EventLog {
    store: SealedStore,
    name: Box<str>,
    table: Table,
    /// The id of rings that have the log's positions.
    ring: u64,
    /// Held by the reader, so that one reads at a time.
    reading: tokio::sync::Mutex<()>,
}

/// An event in a log; one without data begins the log.
#[derive(Serialize, Deserialize)]
struct LoggedEvent<'a> {
    id: std::borrow::Cow<'a, str>,
    /// Milliseconds since 1970.
    time: u64,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The notice to replicas of an event that was appended.
#[derive(Serialize, Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    log: std::borrow::Cow<'a, str>,
    position: u64,
}

impl EventLog {
    fn new(store: &SealedStore, name: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let ring = digest.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Self {
            store: store.clone(),
            name: name.into(),
            table: Table::new("events", MAX_LOGS, MAX_LOG_BYTES, 100),
            ring,
            reading: tokio::sync::Mutex::default(),
        }
    }

    async fn append(
        &self,
        limits: &EventLimits,
        position: u64,
        bytes: &[u8],
    ) -> std::result::Result<Appended, StoreError> {
        let append = Append {
            position,
            bytes,
            owner: "events",
            max_entries: limits.max_kept,
            max_bytes: limits.max_kept_bytes.max(limits.max_payload * 2),
            expires_in: limits.keep_for.max(KEPT_IDLE),
        };
        self.store.append(&self.table, &self.name, append).await
    }
}

/// An event for which the store has to be asked.
pub(super) struct Appending {
    server: Server,
    ring: Arc<EventRing>,
    /// The name of the event.
    name: &'static str,
    event: Occurrence,
}

impl Appending {
    /// Keeps an event; what is left to do, where replicas share a store.
    ///
    /// # Errors
    /// Only this process knows whom it is for.
    pub(super) fn of(
        server: Server,
        ring: Arc<EventRing>,
        name: &'static str,
        event: Occurrence,
    ) -> Result<Option<Self>> {
        if ring.log(&server).is_none() {
            ring.push(Arc::new(event));
            return Ok(None);
        }
        if event.recipients.is_some() {
            return Err(Error::from(format!(
                "the event `{name}` is emitted with `.to(..)`, and what that decides is not known to other replicas\n\
                 put into the payload whom it is for, and let the function of the event decide by `Option<&Principal>`"
            )));
        }
        Ok(Some(Self { server, ring, name, event }))
    }

    /// Appends the event after the last one, and tells the replicas.
    ///
    /// # Errors
    /// The store has not taken the event, or has not said so.
    pub(super) async fn run(self) -> Result<()> {
        let Self { server, ring, name, event } = self;
        let Some(log) = ring.log(&server) else {
            ring.push(Arc::new(event));
            return Ok(());
        };
        let data: &RawValue = serde_json::from_str(&event.data)
            .map_err(|error| Error::from("the payload is not JSON").caused_by(error))?;
        let logged = LoggedEvent { id: (&*event.id).into(), time: event.time, data: Some(data) };
        let bytes = serde_json::to_vec(&logged)
            .map_err(|error| Error::from("the event cannot be written").caused_by(error))?;
        ring.follow(&server).await;
        let failed = |error: StoreError| {
            Error::from(format!("the shared store has not taken the event `{name}`")).caused_by(error)
        };
        let mut position =
            ring.next_in_log(log.ring).unwrap_or_else(|| unix_millis(SystemTime::now()) * PER_MILLISECOND);
        for _ in 0..MAX_ATTEMPTS {
            match log.append(&ring.limits, position, &bytes).await.map_err(failed)? {
                Appended::Stored => {
                    ring.publish(log, position, event).await;
                    return Ok(());
                }
                Appended::Conflict(next) => position = next,
                Appended::TooLarge => {
                    return Err(Error::from("the shared store has no room for an event of this size"));
                }
            }
        }
        Err(failed("other replicas append too often".into()))
    }
}

impl EventRing {
    /// The log, where replicas share a store.
    fn log(&self, server: &Server) -> Option<&EventLog> {
        let log = self.log.get_or_init(|| {
            let store = server.store();
            let log = store.is_shared().then(|| EventLog::new(store, &self.name))?;
            self.begin_log(log.ring);
            Some(log)
        });
        log.as_ref()
    }

    /// Delivers an event of the log, here and at the replicas.
    async fn publish(&self, log: &EventLog, position: u64, event: Occurrence) {
        if !self.push_at(position, Arc::new(event)) {
            self.catch_up(log).await;
        }
        // a replica that is not told reads the log anyway, a little later
        let _fits = log.store.send(TOPIC, &Told { log: (&*log.name).into(), position });
    }

    /// Reads the log from now on, and what it has by now.
    pub(super) async fn follow(&self, server: &Server) {
        let Some(log) = self.log(server) else { return };
        let registry = server.registry();
        if let Some(rings) = registry.capabilities.get::<EventRings>()
            && !rings.is_followed.swap(true, Ordering::Relaxed)
        {
            let notices = log.store.listen(TOPIC);
            let _runs = spawn(follow_all(server.downgrade(), Arc::downgrade(&rings), notices));
        }
        drop(registry);
        self.is_used.store(true, Ordering::Relaxed);
        self.catch_up(log).await;
    }

    /// Reads what the log has after the end of the ring.
    async fn catch_up(&self, log: &EventLog) {
        let _one = log.reading.lock().await;
        let mut after = self.end_in_log(log.ring);
        let (mut is_other, mut has_begun) = (false, false);
        loop {
            let page = match log.store.read_after(&log.table, &log.name, after, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, "the events of other replicas cannot be read yet");
                    return;
                }
            };
            let Some(page) = page else {
                if std::mem::replace(&mut has_begun, true) {
                    tracing::debug!(event = &*log.name, "the log of an event does not last");
                    return;
                }
                // a log begins with an entry that is not an event, so that it is known where "now" is
                let marker = LoggedEvent { id: "".into(), time: unix_millis(SystemTime::now()), data: None };
                let Ok(marker) = serde_json::to_vec(&marker) else { return };
                let begin = (unix_millis(SystemTime::now()) * PER_MILLISECOND).max(after + 1);
                match log.append(&self.limits, begin, &marker).await {
                    Ok(Appended::Stored | Appended::Conflict(_)) => continue,
                    Ok(Appended::TooLarge) => {
                        tracing::warn!(
                            event = &*log.name,
                            "the shared store has no room for the log of an event"
                        );
                        return;
                    }
                    Err(_) => return,
                }
            };
            if page.last < after {
                // of an earlier log
                (after, is_other) = (0, true);
                continue;
            }
            let (before, last) = (after, page.last);
            after = self.take_page(log.ring, events_of(log, &page), std::mem::take(&mut is_other));
            // a page without the entries that the store says it has is not asked for again
            if after >= last || after == before {
                return;
            }
        }
    }
}

/// The first position of a page, and its events. An entry that is not an event only holds its place.
fn events_of(log: &EventLog, page: &LogPage) -> (u64, Vec<(u64, Occurrence)>) {
    let place = || Occurrence::logged(0, String::new(), String::new());
    let events = page.entries.iter().map(|entry| {
        let logged = serde_json::from_slice::<LoggedEvent<'_>>(&entry.bytes);
        let event = match logged {
            Ok(LoggedEvent { id, time, data: Some(data) }) => {
                Occurrence::logged(time, id.into_owned(), data.get().to_owned())
            }
            Ok(LoggedEvent { data: None, .. }) => place(),
            Err(_) => {
                log.store.log_other_version(&log.table);
                place()
            }
        };
        (entry.position, event)
    });
    (page.first, events.collect())
}

/// Keeps the rings of a server at the ends of their logs, until the server is gone.
async fn follow_all(server: WeakServer, rings: Weak<EventRings>, mut notices: Listener) {
    catch_up_all(&server, &rings, None).await;
    loop {
        let received = tokio::select! {
            received = notices.next() => received,
            () = sleep(CHECK) => Some(Received::Missed),
        };
        match received {
            None => return,
            Some(Received::Missed) => catch_up_all(&server, &rings, None).await,
            Some(Received::Message(message)) => {
                let told = serde_json::from_slice::<Told<'_>>(&message).ok();
                catch_up_all(&server, &rings, told.as_ref()).await;
            }
        }
    }
}

async fn catch_up_all(server: &WeakServer, rings: &Weak<EventRings>, told: Option<&Told<'_>>) {
    let Some(rings) = rings.upgrade() else { return };
    for ring in rings.used() {
        let log = match server.upgrade() {
            Some(server) => ring.log(&server),
            None => return,
        };
        let Some(log) = log else { continue };
        let is_new = match told {
            None => true,
            Some(told) if told.log == *log.name => ring.end_in_log(log.ring) < told.position,
            Some(_) => false,
        };
        if is_new {
            ring.catch_up(log).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        crypto::{Key, KeyRing, test_key},
        store::Memory,
    };

    #[tokio::test]
    async fn events_of_another_version_only_hold_their_places_and_the_log_says_so() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let other = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        other.become_other_version();
        let this = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        let (foreign, own) = (EventLog::new(&other, "a"), EventLog::new(&this, "a"));
        let limits = EventLimits::new();
        let event = |id: &'static str| {
            let data = RawValue::from_string(format!("\"{id}\"")).unwrap();
            serde_json::to_vec(&LoggedEvent {
                id: id.into(),
                time: unix_millis(SystemTime::now()),
                data: Some(&data),
            })
            .unwrap()
        };
        own.append(&limits, 1, &event("one")).await.unwrap();
        foreign.append(&limits, 2, &event("two")).await.unwrap();
        // the same format, and not the members that this version knows
        own.append(&limits, 3, b"{\"number\":3}").await.unwrap();
        own.append(&limits, 4, &event("four")).await.unwrap();
        let page = own.store.read_after(&own.table, "a", 0, 10).await.unwrap().unwrap();
        assert!(this.has_logged_other_version());
        let (first, events) = events_of(&own, &page);
        let ids: Vec<_> = events.iter().map(|(at, event)| (*at, &*event.id, event.is_empty())).collect();
        assert_eq!(first, 1);
        assert_eq!(ids, [(1, "one", false), (2, "", true), (3, "", true), (4, "four", false)]);
    }

    #[tokio::test]
    async fn a_log_for_which_the_store_has_no_room_is_not_begun_again_and_again() {
        let keys = KeyRing::new(vec![Key::new(test_key(1))]);
        let store = SealedStore::shared(Arc::new(Memory::default()), &keys, "test");
        let limits = EventLimits { max_kept_bytes: 1, max_payload: 0, ..EventLimits::new() };
        let (ring, log) = (EventRings::default().of(1, "a", &limits), EventLog::new(&store, "a"));
        ring.catch_up(&log).await;
        assert!(store.read_after(&log.table, "a", 0, 10).await.unwrap().is_none());
    }
}
