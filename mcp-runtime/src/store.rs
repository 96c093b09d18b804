//! The store of events that clients of legacy HTTP sessions may resume from.

use std::{future::Future, pin::Pin, sync::Arc};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its number in the stream, from 1.
    pub number: u64,
    /// A JSON-RPC message; empty at the end of a stream that ended without one.
    pub message: Arc<str>,
    /// Whether it is the last of its stream.
    pub last: bool,
}

impl StoredEvent {
    /// The event with that number.
    pub fn new(number: u64, message: impl Into<Arc<str>>, last: bool) -> Self {
        Self { number, message: message.into(), last }
    }
}

/// What an [`EventStore`] returns: a boxed future, so that the trait is object-safe.
type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps the events of legacy HTTP sessions, for clients that reconnect with `Last-Event-ID`.
///
/// The default store is in the server's memory. With a store that replicas share, a client can resume its streams at
/// any of them. Sessions and streams have short ids that cannot be guessed. A store may remove any event: it is not
/// sent again then. It should remove streams to which no event was added for longer than clients take to reconnect.
///
/// See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
pub trait EventStore: Send + Sync {
    /// Adds an event to a stream; the numbers of a stream increase.
    fn append<'a>(&'a self, session: &'a str, stream: &'a str, event: StoredEvent) -> StoreFuture<'a, ()>;

    /// The events of a stream with numbers above `after`, in order; `None` if the stream is unknown.
    fn read<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        after: u64,
    ) -> StoreFuture<'a, Option<Vec<StoredEvent>>>;

    /// Removes the streams of a session that has ended.
    fn forget<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()>;
}

/// The limits of the store in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventBounds {
    /// Bytes of all events.
    pub(crate) bytes: usize,
    /// Number of streams.
    pub(crate) streams: usize,
    /// Events of one stream.
    pub(crate) events: usize,
}

impl Default for EventBounds {
    fn default() -> Self {
        Self { bytes: 16 << 20, streams: 4096, events: 1024 }
    }
}
