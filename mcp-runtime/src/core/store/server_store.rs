//! State that a server keeps outside of its calls: in memory, or in a store that replicas share. Values in memory are
//! made when something is first put there, so that a program that keeps nothing does not contain them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::{
    Append, Appended, LogPage, Memory, Stored,
    shared::{Received, Shared, Subscription, Table, Value, Write, Written},
};
use crate::core::crypto::KeyRing;

pub(crate) type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// A store that replicas share, as their server uses it.
pub(crate) trait SharedStore: Shared {
    /// Checks what does not depend on whether the store can be reached.
    ///
    /// # Errors
    /// The server's key is random.
    fn check_keys(&self) -> Result<(), String>;

    /// Opens a message that a subscriber of a topic receives; `None` if the server has not sealed it.
    fn open_message(&self, topic: &str, message: &[u8]) -> Option<Received>;

    /// Looks up a key, where it matters that another version of this crate has written its value.
    ///
    /// # Errors
    /// The store cannot be read, or has something there that the server has not sealed for it.
    fn find<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Found>;

    /// Logs that something in a table cannot be read, at most once in a while.
    fn log_other_version(&self, table: &Table);

    /// Whether something of another version was met a moment ago.
    #[cfg(test)]
    fn has_logged_other_version(&self) -> bool;
}

/// The value that the store has for a key.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    /// A value that another version of this crate has written, and this one cannot read.
    OtherVersion,
    Value(Value),
}

/// Wraps the program's store. An option holds it, so that only a program that sets the option contains the code.
pub(crate) type SealStore = fn(Arc<dyn Shared>, &KeyRing, &str) -> SealedStore;

/// The store of one server; clones are the same.
#[derive(Clone)]
pub(crate) struct SealedStore {
    memory: Arc<OnceLock<Memory>>,
    /// Absent in memory.
    shared: Option<Arc<dyn SharedStore>>,
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}

impl SealedStore {
    pub(crate) fn in_memory() -> Self {
        Self { memory: Arc::default(), shared: None }
    }

    /// The store that the replicas of a server share.
    pub(super) fn of(shared: Arc<dyn SharedStore>) -> Self {
        Self { shared: Some(shared), ..Self::in_memory() }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The store that replicas share, for what a store in memory is not needed for.
    pub(crate) fn shared_store(&self) -> Option<&Arc<dyn SharedStore>> {
        self.shared.as_ref()
    }

    fn backend(&self) -> &dyn Shared {
        match &self.shared {
            Some(shared) => &**shared,
            None => self.memory.get_or_init(Memory::default),
        }
    }

    /// Checks what does not depend on whether the store can be reached.
    ///
    /// # Errors
    /// The store is shared, and the server's key is random.
    #[cfg(feature = "http")]
    pub(crate) fn check_keys(&self) -> Result<(), String> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.check_keys())
    }

    /// Connects, when the server begins to serve.
    ///
    /// # Errors
    /// The store refuses the server, or what replicas have in it is sealed with other keys. That it cannot be reached is
    /// not an error.
    pub(crate) fn open(&self) -> Stored<'_, ()> {
        self.backend().open()
    }

    /// The value of a key, and its version.
    ///
    /// # Errors
    /// The store cannot be read, or has something there that the server has not sealed for it.
    pub(crate) fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        self.backend().get(table, key)
    }

    /// Looks up a key, where it matters that another version of this crate has written its value.
    ///
    /// # Errors
    /// The store cannot be read, or has something there that the server has not sealed for it.
    pub(crate) async fn find(&self, table: &Table, key: &str) -> Result<Found, StoreError> {
        match &self.shared {
            Some(shared) => shared.find(table, key).await,
            None => Ok(self.get(table, key).await?.map_or(Found::Nothing, Found::Value)),
        }
    }

    /// Logs that something in a table cannot be read, at most once in a while.
    pub(crate) fn log_other_version(&self, table: &Table) {
        if let Some(shared) = &self.shared {
            shared.log_other_version(table);
        }
    }

    /// Whether something of another version was met a moment ago.
    #[cfg(test)]
    pub(crate) fn has_logged_other_version(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.has_logged_other_version())
    }

    /// Puts a value, if its condition and the limits of the table allow that.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the value was put.
    pub(crate) fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        self.backend().put(table, key, write)
    }

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        self.backend().remove(table, key)
    }

    /// Appends an entry to a log, if that has the place for it, see [`Shared::append`].
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the entry was appended.
    pub(crate) fn append<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        append: Append<'a>,
    ) -> Stored<'a, Appended> {
        self.backend().append(table, log, append)
    }

    /// Reads entries of a log, see [`Shared::read_after`].
    ///
    /// # Errors
    /// The store cannot be read, or has entries that this server has not sealed for their place.
    pub(crate) fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        self.backend().read_after(table, log, position, limit)
    }

    /// Sends a message to all replicas.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        self.backend().publish(topic, message)
    }

    /// Receives the messages of all replicas.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn subscribe(&self, topic: &str) -> Result<SealedSubscription, StoreError> {
        let subscription = self.backend().subscribe(topic).await?;
        Ok(SealedSubscription { subscription, shared: self.shared.clone(), topic: topic.into() })
    }
}

/// The messages of a topic.
pub(crate) struct SealedSubscription {
    subscription: Subscription,
    shared: Option<Arc<dyn SharedStore>>,
    topic: Box<str>,
}

impl SealedSubscription {
    /// The next message, or that some were lost; `None` at the end of them.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        loop {
            match (self.subscription.next().await?, &self.shared) {
                (Received::Message(message), Some(shared)) => {
                    if let Some(received) = shared.open_message(&self.topic, &message) {
                        return Some(received);
                    }
                }
                (received, _) => return Some(received),
            }
        }
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
