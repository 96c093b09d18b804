//! Where events are kept that clients may come back for, and how many.

use std::{future::Future, pin::Pin, sync::Arc};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its place in the stream, from 1 on.
    pub number: u64,
    /// A JSON-RPC message; empty at the end of a stream that ended without one.
    pub message: Arc<str>,
    /// Whether it is the last of its stream.
    pub last: bool,
}

impl StoredEvent {
    /// An event of that place.
    pub fn new(number: u64, message: impl Into<Arc<str>>, last: bool) -> Self {
        Self { number, message: message.into(), last }
    }
}

/// What a store gives back: a future, boxed so that the trait can be used as an object.
type Kept<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps events of handshake-era sessions over HTTP, for clients that come back with `Last-Event-ID`.
///
/// The server's own store is in its memory. Implement this over a store that replicas share, and a client may resume
/// its streams at any of them. Sessions and streams are named by short texts that nobody can guess. A store may
/// forget what it likes: what was forgotten is not sent again. It should forget streams that nobody has added to for
/// longer than clients come back.
///
/// See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
pub trait EventStore: Send + Sync {
    /// Adds an event to a stream; the numbers of a stream increase.
    fn append<'a>(&'a self, session: &'a str, stream: &'a str, event: StoredEvent) -> Kept<'a, ()>;

    /// The events of a stream whose numbers are above `after`, in order; `None` if nothing is known of the stream.
    fn read<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        after: u64,
    ) -> Kept<'a, Option<Vec<StoredEvent>>>;

    /// Forgets the streams of a session, which has ended.
    fn forget<'a>(&'a self, session: &'a str) -> Kept<'a, ()>;
}

/// How much the server's own store keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventBounds {
    /// Bytes of all events.
    pub(crate) bytes: usize,
    /// Streams.
    pub(crate) streams: usize,
    /// Events of one stream.
    pub(crate) events: usize,
}

impl Default for EventBounds {
    fn default() -> Self {
        Self { bytes: 16 << 20, streams: 4096, events: 1024 }
    }
}
