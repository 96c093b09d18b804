//! The interface of a store for all replicas of a server: the trait, its rates and its messages. A store keeps nothing
//! without an owner, a limit and an expiry.

mod memory;
mod messages;
mod rate;
mod sealed;

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

pub use self::memory::Memory;
pub(crate) use self::messages::Listener;
pub(super) use self::{messages::Messages, rate::SharedCount, sealed::Sealing};
use super::{
    Append, Appended, CallerRate, Condition, Found, LogPage, MemoryLogs, Rate, Received, SealedStore,
    StoreError, StoreFuture, Table, Value, Write, Written,
};
use crate::core::admission::Owner;

/// The result of an operation of a store, which may have to wait for a network.
pub type Stored<'a, T> = StoreFuture<'a, Result<T, Box<dyn std::error::Error + Send + Sync>>>;

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

/// Messages of a topic that one subscriber has not received yet.
pub(crate) const MAX_MESSAGES: usize = 1024;

/// The messages of a topic.
#[derive(Debug)]
pub struct Subscription {
    messages: mpsc::Receiver<Arc<[u8]>>,
    missed: mpsc::Receiver<()>,
}

/// The store's end of a [`Subscription`].
#[derive(Debug, Clone)]
pub struct Publisher {
    messages: mpsc::Sender<Arc<[u8]>>,
    missed: mpsc::Sender<()>,
}

impl Subscription {
    /// A subscription that holds at most this many messages that were not received yet, and the store's end of it.
    #[must_use]
    pub fn new(capacity: usize) -> (Publisher, Self) {
        let (messages, received) = mpsc::channel(capacity.max(1));
        let (missed, has_missed) = mpsc::channel(1);
        (Publisher { messages, missed }, Self { messages: received, missed: has_missed })
    }

    /// The next message, or that some were lost; `None` at the end of them.
    pub async fn next(&mut self) -> Option<Received> {
        tokio::select! {
            biased;
            Some(message) = self.messages.recv() => Some(Received::Message(message)),
            Some(()) = self.missed.recv() => Some(Received::Missed),
            else => None,
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

impl Table {
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
}
