//! State that a server keeps outside of its calls: in memory, or in a store that replicas share.

#[cfg(all(test, feature = "shared"))]
use std::sync::atomic::{AtomicBool, Ordering};
use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{
    Append, Appended, LogPage, Memory,
    shared::{Received, Shared, Subscription, Table, Take, Taken, Value, Write, Written},
};
use crate::core::{
    crypto::random_id,
    log_limit::{LogLimit, LogLine},
    sync::Mutex,
};

pub(crate) type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// The format of what is stored; others are of other versions of this crate.
pub(super) const FORMAT: u8 = 1;

/// The value that the store has for a key.
#[derive(Debug)]
pub(crate) enum Found<T = Value> {
    Nothing,
    /// A value that another version of this crate has written, and this one cannot read.
    OtherVersion,
    Value(T),
}

/// The store of one server; clones are the same.
#[derive(Clone)]
pub(crate) struct SealedStore(Arc<StoreInner>);

struct StoreInner {
    /// In memory, it is made when something is first kept or asked for.
    memory: OnceLock<Memory>,
    /// What replicas share, sealed.
    shared: Option<Arc<dyn Shared>>,
    process: Arc<str>,
    #[cfg(any(feature = "events", feature = "shared", feature = "tasks"))]
    messages: super::messages::Messages,
    /// Since when operations are answered.
    reached: Mutex<Option<Instant>>,
    other_versions: LogLimit,
    #[cfg(all(test, feature = "shared"))]
    is_other_version: AtomicBool,
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}

impl SealedStore {
    pub(crate) fn in_memory() -> Self {
        Self::new(None)
    }

    /// With a store that replicas share, and that seals.
    pub(super) fn new(shared: Option<Arc<dyn Shared>>) -> Self {
        Self(Arc::new(StoreInner {
            memory: OnceLock::new(),
            shared,
            // without randomness nothing can be sealed, so that no other process meets the empty id
            process: random_id().unwrap_or_default().into(),
            #[cfg(any(feature = "events", feature = "shared", feature = "tasks"))]
            messages: Default::default(),
            reached: Mutex::default(),
            other_versions: LogLimit::new(),
            #[cfg(all(test, feature = "shared"))]
            is_other_version: AtomicBool::new(false),
        }))
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.0.shared.is_some()
    }

    /// The id of this process among the replicas: random, and another one for each server.
    pub(crate) fn process(&self) -> &Arc<str> {
        &self.0.process
    }

    #[cfg(any(feature = "events", feature = "shared", feature = "tasks"))]
    pub(super) fn messages(&self) -> &super::messages::Messages {
        &self.0.messages
    }

    fn backend(&self) -> &dyn Shared {
        match &self.0.shared {
            Some(shared) => &**shared,
            None => self.0.memory.get_or_init(Memory::default),
        }
    }

    /// Checks what does not depend on whether the store can be reached.
    ///
    /// # Errors
    /// The store is shared, and the server's key is random.
    #[cfg(feature = "http")]
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.shared.as_ref().map_or(Ok(()), |shared| shared.check())
    }

    /// Connects, when the server begins to serve.
    ///
    /// # Errors
    /// The store refuses the server, or what replicas have in it is sealed with other keys. That it cannot be reached is
    /// not an error.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        self.backend().open().await
    }

    /// For how long operations were answered: zero if the last one was not, or the store was away since then.
    #[cfg(feature = "tasks")]
    pub(crate) fn reached_for(&self) -> Duration {
        self.0.reached.lock().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Records whether an operation was answered.
    fn note<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let mut reached = self.0.reached.lock();
        match &answer {
            Ok(_) => _ = reached.get_or_insert_with(Instant::now),
            Err(_) => *reached = None,
        }
        answer
    }

    /// Records that the store was away.
    pub(super) fn note_loss(&self) {
        *self.0.reached.lock() = None;
    }

    /// The value of a key, and its version.
    ///
    /// # Errors
    /// The store cannot be read, or has something there that the server has not sealed for it.
    pub(crate) async fn find(&self, table: &Table, key: &str) -> Result<Found, StoreError> {
        let Some(Value { bytes, version }) = self.note(self.backend().get(table, key).await)? else {
            return Ok(Found::Nothing);
        };
        Ok(match self.unformatted(&bytes) {
            Some(bytes) => Found::Value(Value { bytes: bytes.to_vec(), version }),
            None => {
                self.log_other_version(table);
                Found::OtherVersion
            }
        })
    }

    /// Logs that something in a table cannot be read, at most once in a while.
    pub(crate) fn log_other_version(&self, table: &Table) {
        if let Some(LogLine { suppressed }) = self.0.other_versions.line() {
            let table = table.name();
            tracing::warn!(
                table,
                suppressed,
                "ignoring a value that another version of this crate wrote to the shared store"
            );
        }
    }

    /// From now on, it is that of a server of another version of this crate.
    #[cfg(all(test, feature = "shared"))]
    pub(crate) fn become_other_version(&self) {
        self.0.is_other_version.store(true, Ordering::Relaxed);
    }

    fn format(&self) -> u8 {
        #[cfg(all(test, feature = "shared"))]
        if self.0.is_other_version.load(Ordering::Relaxed) {
            return FORMAT + 1;
        }
        FORMAT
    }

    /// What is stored for these bytes.
    fn formatted(&self, bytes: &[u8]) -> Vec<u8> {
        let mut formatted = Vec::with_capacity(1 + bytes.len());
        formatted.push(self.format());
        formatted.extend_from_slice(bytes);
        formatted
    }

    /// What was stored; `None` if that was done by another version of this crate.
    fn unformatted<'a>(&self, stored: &'a [u8]) -> Option<&'a [u8]> {
        stored.split_first().filter(|(format, _)| **format == self.format()).map(|(_, bytes)| bytes)
    }

    /// Whether something of another version was met a moment ago.
    #[cfg(all(test, feature = "shared"))]
    pub(crate) fn has_logged_other_version(&self) -> bool {
        self.0.other_versions.line().is_none()
    }

    /// Puts a value, if its condition and the limits of the table allow that.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the value was put.
    pub(crate) async fn put(
        &self,
        table: &Table,
        key: &str,
        write: Write<'_>,
    ) -> Result<Written, StoreError> {
        let bytes = self.formatted(write.bytes);
        self.note(self.backend().put(table, key, Write { bytes: &bytes, ..write }).await)
    }

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn remove(&self, table: &Table, key: &str) -> Result<(), StoreError> {
        self.backend().remove(table, key).await
    }

    /// Takes from the rest of a rate, see [`Shared::take`].
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn take(&self, table: &Table, key: &str, take: Take<'_>) -> Result<Taken, StoreError> {
        self.backend().take(table, key, take).await
    }

    /// Appends an entry to a log, if that has the place for it, see [`Shared::append`].
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the entry was appended.
    pub(crate) async fn append(
        &self,
        table: &Table,
        log: &str,
        append: Append<'_>,
    ) -> Result<Appended, StoreError> {
        let bytes = self.formatted(append.bytes);
        self.backend().append(table, log, Append { bytes: &bytes, ..append }).await
    }

    /// Reads entries of a log, see [`Shared::read_after`]. Those of another version are empty.
    ///
    /// # Errors
    /// The store cannot be read, or has entries that this server has not sealed for their place.
    pub(crate) async fn read_after(
        &self,
        table: &Table,
        log: &str,
        position: u64,
        limit: usize,
    ) -> Result<Option<LogPage>, StoreError> {
        let mut page = self.backend().read_after(table, log, position, limit).await?;
        for entry in page.iter_mut().flat_map(|page| &mut page.entries) {
            entry.bytes = match self.unformatted(&entry.bytes) {
                Some(bytes) => bytes.into(),
                None => {
                    self.log_other_version(table);
                    Arc::default()
                }
            };
        }
        Ok(page)
    }

    /// Sends a message to all replicas.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn publish(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        self.backend().publish(topic, &self.formatted(message)).await
    }

    /// Receives the messages of all replicas.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn subscribe(&self, topic: &str) -> Result<SealedSubscription, StoreError> {
        let subscription = self.backend().subscribe(topic).await?;
        Ok(SealedSubscription { store: self.clone(), subscription })
    }
}

/// The messages of a topic.
pub(super) struct SealedSubscription {
    store: SealedStore,
    subscription: Subscription,
}

impl SealedSubscription {
    /// The next message, or that some were lost; `None` at the end of them.
    pub(super) async fn next(&mut self) -> Option<Received> {
        Some(match self.subscription.next().await? {
            Received::Message(message) => match self.store.unformatted(&message) {
                Some(message) => Received::Message(message.into()),
                // another version of this crate: what it says cannot be read
                None => Received::Missed,
            },
            Received::Missed => Received::Missed,
        })
    }
}

/// A name of letters and digits; of a name that has others, what tells it apart is appended.
pub(super) fn plain_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    if plain == name { plain } else { format!("{plain}-{}", digest(&[name], 6)) }
}

pub(super) fn digest(parts: &[&str], bytes: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    URL_SAFE_NO_PAD.encode(hash.get(..bytes).unwrap_or(&hash))
}
