//! What one connection keeps between its requests: which of them run, which requests of the server wait for
//! responses, what a client of a handshake revision has set, and when the connection ends.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU8, Ordering},
};

use tokio_util::sync::CancellationToken;

use super::InFlight;
use crate::{
    connection::{ClientId, PendingRequests, Response, SessionState},
    events::Filter,
    protocol::LogLevel,
};

/// The only client of a connection.
pub(crate) const THE_CLIENT: ClientId = [0; 16];

/// One connection, for as long as it lasts.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    pub(crate) in_flight: InFlight,
    pub(crate) pending: PendingRequests,
    pub(crate) closed: CancellationToken,
    level: LevelSetting,
    /// What the client is notified of, once it has shaken hands with a server that sends such notifications.
    filter: OnceLock<Arc<Filter>>,
}

impl ConnectionState {
    /// Hands a response to the request of that id, as raw JSON; `false` if none waits for it.
    pub(crate) fn deliver(&self, id: &str, response: Response) -> bool {
        self.pending.deliver(&THE_CLIENT, id, response)
    }

    /// What the client is notified of from now on; `None` if that was settled before.
    pub(crate) fn follow(&self, filter: Arc<Filter>) -> Option<Arc<Filter>> {
        self.filter.set(filter.clone()).ok().map(|()| filter)
    }

    /// Nothing more comes from the client: requests of the server fail.
    pub(crate) fn end(&self) {
        self.closed.cancel();
        self.pending.close(&THE_CLIENT);
    }
}

impl SessionState for ConnectionState {
    fn level(&self) -> Option<LogLevel> {
        self.level.get()
    }

    fn set_level(&self, level: LogLevel) -> bool {
        self.level.set(level);
        true
    }

    fn subscribe(&self, uri: &str) -> bool {
        self.filter.get().is_some_and(|filter| filter.subscribe(uri))
    }

    fn unsubscribe(&self, uri: &str) {
        if let Some(filter) = self.filter.get() {
            filter.unsubscribe(uri);
        }
    }
}

/// The level of `logging/setLevel`, once it was set.
#[derive(Debug)]
struct LevelSetting(AtomicU8);

impl LevelSetting {
    const UNSET: u8 = u8::MAX;

    fn get(&self) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(self.0.load(Ordering::Relaxed))).copied()
    }

    fn set(&self, level: LogLevel) {
        self.0.store(level as u8, Ordering::Relaxed);
    }
}

impl Default for LevelSetting {
    fn default() -> Self {
        Self(AtomicU8::new(Self::UNSET))
    }
}
