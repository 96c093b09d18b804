//! The interface of a store for all replicas of a server: the trait, and the types of its operations. A store keeps nothing
//! without an owner, a limit and an expiry.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::Stored;
use crate::core::admission::{Owner, Quota, Rate};

/// A store that the replicas of a server share.
///
/// `Redis` is one, with the feature `redis`; [`Memory`](super::Memory) is the reference, and what a server uses by itself. An
/// implementation for another store is complete when `testing::check_shared` accepts it. Set it with
/// [`ServerBuilder::shared`](crate::ServerBuilder::shared).
///
/// Each operation is atomic, for all replicas. Values are sealed: a store sees random-looking bytes, and names that are
/// digests. It should fail rather than wait: an operation that takes longer than 2 seconds counts as failed.
pub trait Shared: Send + Sync {
    /// Checks the store's settings without connecting to it, when a server is built.
    ///
    /// # Errors
    /// The store cannot work with them: a URL that is not valid, say. `build()` fails with that.
    fn check(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Whether the store is connected now, for metrics. `None` if it has no connection, or does not know: then the outcome of
    /// the last operation counts.
    fn is_connected(&self) -> Option<bool> {
        None
    }

    /// Connects, when a server begins to serve; it may be called again.
    ///
    /// # Errors
    /// The store refuses the server. A store that cannot be reached at the moment is not an error: a server can serve
    /// requests that need no store, and the store may be there later.
    fn open(&self) -> Stored<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The value of a key; `None` if there is none, or it has expired.
    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>>;

    /// Puts a value, if its condition and the limits of the table allow that; otherwise nothing has changed.
    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written>;

    /// Removes a value, if there is one.
    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()>;

    /// Takes from the rest of a rate, if that suffices; otherwise nothing has changed. The taken amount comes back as
    /// [`Rate::take`] says, by the clock of the store.
    ///
    /// How much is left is kept for each key of each owner until everything has come back. If a table has no place for one
    /// more key, the one is forgotten of which everything comes back first. Keys of rates and of values are apart.
    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken>;

    /// Appends an entry to a log, which begins with its first entry and ends when it expires.
    ///
    /// The entry has the position after that of the last entry, or any in a new log; otherwise it is a
    /// [conflict](Appended::Conflict). The oldest entries of the log go while it has more entries or bytes than the append
    /// allows. The table has at most [`max_values`](Table::max_values) logs, whose entries have at most
    /// [`max_bytes`](Table::max_bytes). If the owner has more than its share of either, those of its logs go that nothing
    /// was appended to for longest, and of its only log the oldest entries; if all owners together have too much, those of
    /// the owner that has most of it. The entry that is appended never goes. A log belongs to the owner that began it.
    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended>;

    /// Reads at most `limit` entries of a log, those with the lowest positions above `position`; `None` if the log
    /// does not exist, or has expired.
    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>>;

    /// Sends a message to the subscribers of a topic at every replica, this one included. Nothing is kept for later
    /// subscribers.
    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()>;

    /// Subscribes to a topic. Messages that are published after this has completed are received in order. While the store
    /// cannot be reached, this succeeds, and messages are received from when it can be.
    ///
    /// If messages may be lost, [`Publisher::missed`] must be called afterwards: when the connection is back, for example.
    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription>;
}

impl<S: Shared + ?Sized> Shared for Arc<S> {
    fn check(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        (**self).check()
    }

    fn is_connected(&self) -> Option<bool> {
        (**self).is_connected()
    }

    fn open(&self) -> Stored<'_, ()> {
        (**self).open()
    }

    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        (**self).get(table, key)
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        (**self).put(table, key, write)
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        (**self).remove(table, key)
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        (**self).take(table, key, take)
    }

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        (**self).append(table, log, append)
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        (**self).read_after(table, log, position, limit)
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        (**self).publish(topic, message)
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        (**self).subscribe(topic)
    }
}

/// A part of a store, with its limits. Expired values count no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    name: Arc<str>,
    values: usize,
    bytes: usize,
    share_percent: u8,
}

impl Table {
    /// A table of at most this many values, and this many bytes in total; one owner may have `share_percent` of both.
    #[must_use]
    pub fn new(name: &str, values: usize, bytes: usize, share_percent: u8) -> Self {
        Self { name: name.into(), values, bytes, share_percent }
    }

    /// Its name, of ASCII letters, digits, `-`, `_`, `.` and `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many values it may have.
    #[must_use]
    pub fn max_values(&self) -> usize {
        self.values
    }

    /// How many bytes its values may have in total.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.bytes
    }

    /// How many values one owner may have.
    #[must_use]
    pub fn max_values_of(&self, owner: &str) -> usize {
        self.value_quota().share_of(&Owner::from_text(owner.into()))
    }

    /// How many bytes the values of one owner may have.
    #[must_use]
    pub fn max_bytes_of(&self, owner: &str) -> usize {
        self.byte_quota().share_of(&Owner::from_text(owner.into()))
    }

    pub(super) fn value_quota(&self) -> Quota {
        Quota::new(self.values, self.share_percent)
    }

    pub(super) fn byte_quota(&self) -> Quota {
        Quota::new(self.bytes, self.share_percent)
    }

    /// The same under another name.
    pub(super) fn renamed(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }
}

/// A value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The stored value.
    pub bytes: Vec<u8>,
    /// 1, or one more than the version it has replaced by [`Condition::Version`].
    pub version: u64,
}

/// A value to put.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The value.
    pub bytes: &'a [u8],
    /// The owner whose share of the table it uses.
    pub owner: &'a str,
    /// For how long it is kept.
    pub expires_in: Duration,
    /// When it is put.
    pub condition: Condition,
}

/// When a value is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Whether or not the key has a value; its version is 1 then.
    Always,
    /// If the key has no value; its version is 1 then.
    Absent,
    /// If the key has a value of that version, which grows by one.
    Version(u64),
}

impl Condition {
    /// The version of a value that was put under it.
    #[must_use]
    pub fn next_version(self) -> u64 {
        match self {
            Self::Always | Self::Absent => 1,
            Self::Version(version) => version.saturating_add(1),
        }
    }
}

/// The outcome of putting a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It was put.
    Stored,
    /// Its condition does not hold.
    Conflict,
    /// It would exceed what its owner, or all owners together, may have in the table.
    Full,
}

/// The amount to take from a rate.
#[derive(Debug, Clone, Copy)]
pub struct Take<'a> {
    /// The owner of the rate, whose share of the table the key uses.
    pub owner: &'a str,
    /// The rate, from then on also of what was taken before.
    pub rate: Rate,
    /// How much of it; more than [`Rate::times`] is never left.
    pub times: u32,
}

/// The outcome of taking from a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    Granted,
    /// Less is left; it suffices after that time.
    Wait(Duration),
    /// The owner has as many keys as it may, and this would be one more.
    Full,
}

/// The highest position of an entry in a log: stores may count with floating-point numbers.
pub(crate) const MAX_POSITION: u64 = (1 << 53) - 1;

/// An entry to append to a log.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// Its position, from 1 to 2⁵³ - 1.
    pub position: u64,
    /// The entry.
    pub bytes: &'a [u8],
    /// The owner whose share of the table a new log uses.
    pub owner: &'a str,
    /// How many entries the log may have.
    pub max_entries: usize,
    /// How many bytes its entries may have in total.
    pub max_bytes: usize,
    /// For how long the log is kept if nothing else is appended.
    pub expires_in: Duration,
}

/// The outcome of appending an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It was appended.
    Stored,
    /// The log has that many positions already, or fewer: the next entry must have this one.
    Conflict(u64),
    /// It has more bytes than the log, the owner or the table may have. Nothing has changed.
    TooLarge,
}

/// Entries that were read of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The entries, in order; their positions are consecutive.
    pub entries: Vec<LogEntry>,
    /// The position of the oldest entry that the log still has. If it is not that of the entry to be read next, or lower,
    /// entries between the two have gone.
    pub first: u64,
    /// The position of the newest entry of the log. If it is lower than the position that was read after, that was the
    /// position of an earlier log of this name.
    pub last: u64,
}

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it is.
    pub position: u64,
    /// The appended entry.
    pub bytes: Arc<[u8]>,
}

/// Messages of a topic that one subscriber has not received yet.
pub(crate) const MAX_MESSAGES: usize = 1024;

/// The messages of a topic.
pub struct Subscription {
    messages: mpsc::Receiver<Arc<[u8]>>,
    missed: mpsc::Receiver<()>,
    /// Opens messages that are sealed.
    open: Option<OpenMessage>,
}

/// `None` of a message that is ignored.
type OpenMessage = Box<dyn Fn(&[u8]) -> Option<Arc<[u8]>> + Send + Sync>;

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// The store's end of a [`Subscription`].
#[derive(Debug, Clone)]
pub struct Publisher {
    messages: mpsc::Sender<Arc<[u8]>>,
    missed: mpsc::Sender<()>,
}

/// An item that a subscriber of a topic receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Arc<[u8]>),
    /// Messages may have been lost.
    Missed,
}

impl Subscription {
    /// A subscription that holds at most this many messages that were not received yet, and the store's end of it.
    #[must_use]
    pub fn new(capacity: usize) -> (Publisher, Self) {
        let (messages, received) = mpsc::channel(capacity.max(1));
        let (missed, has_missed) = mpsc::channel(1);
        (Publisher { messages, missed }, Self { messages: received, missed: has_missed, open: None })
    }

    /// The same, of messages that are opened before they are received.
    pub(super) fn opened_by(self, open: impl Fn(&[u8]) -> Option<Arc<[u8]>> + Send + Sync + 'static) -> Self {
        Self { open: Some(Box::new(open)), ..self }
    }

    /// The next message, or that some were lost; `None` at the end of them.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            let message = tokio::select! {
                biased;
                Some(message) = self.messages.recv() => message,
                Some(()) = self.missed.recv() => return Some(Received::Missed),
                else => return None,
            };
            let opened = match &self.open {
                Some(open) => open(&message),
                None => Some(message),
            };
            if let Some(message) = opened {
                return Some(Received::Message(message));
            }
        }
    }

    /// Whether messages may have been lost, which is not told again.
    pub(super) fn has_missed(&mut self) -> bool {
        self.missed.try_recv().is_ok()
    }
}

impl Publisher {
    /// Passes a message on. If the subscriber holds too many, it is told that it has missed some. Returns whether there is
    /// a subscriber still.
    #[must_use]
    pub fn send(&self, message: Arc<[u8]>) -> bool {
        match self.messages.try_send(message) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.missed();
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    /// Tells the subscriber that messages may have been lost.
    pub fn missed(&self) {
        // one that waits to be received says the same
        let _queued = self.missed.try_send(());
    }

    /// Whether the subscription was dropped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }
}
