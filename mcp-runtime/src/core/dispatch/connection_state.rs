//! The state of one connection between its requests: those in flight, the server's own that wait for responses, the
//! settings of a legacy client, and whether the connection has been closed.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use tokio_util::sync::CancellationToken;

use super::InFlight;
use crate::core::{
    changes::Filter,
    connection::{ClientId, PendingRequests, SessionState, SubscribeError},
    protocol::LogLevel,
    sync::Mutex,
};

/// The id of the only client of a connection.
pub(crate) const THE_CLIENT: ClientId = [0; 16];

/// The state of one connection.
#[derive(Default)]
pub(crate) struct ConnectionState {
    pub(crate) in_flight: InFlight,
    pub(crate) pending: PendingRequests,
    pub(crate) closed: CancellationToken,
    /// Whether a legacy client has sent `notifications/initialized`; it must not be sent requests before.
    pub(crate) initialized: AtomicBool,
    /// The level that `logging/setLevel` has set, if any.
    level: Mutex<Option<LogLevel>>,
    /// The changes that a legacy client is notified of; unset before `initialize`, or if the server sends none.
    filter: OnceLock<Arc<Filter>>,
}

impl ConnectionState {
    /// Sets the changes that the client is notified of; `None` if they have been set before.
    pub(crate) fn set_filter(&self, filter: Arc<Filter>) -> Option<Arc<Filter>> {
        self.filter.set(filter.clone()).ok().map(|()| filter)
    }

    /// Closes the connection: the server's requests to the client fail.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        self.pending.close(&THE_CLIENT);
    }
}

impl SessionState for ConnectionState {
    fn level(&self) -> Option<LogLevel> {
        *self.level.lock()
    }

    fn set_level(&self, level: LogLevel) -> bool {
        *self.level.lock() = Some(level);
        true
    }

    fn subscribe(&self, uri: &str) -> Result<(), SubscribeError> {
        self.filter.get().ok_or(SubscribeError::NoSession)?.subscribe(uri)
    }

    fn unsubscribe(&self, uri: &str) {
        if let Some(filter) = self.filter.get() {
            filter.unsubscribe(uri);
        }
    }
}
