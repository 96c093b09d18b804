//! The sessions that have ended, where replicas share a store: each request of a session asks it.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{
    session_id::{Session, SessionUid},
    sessions::unix_time,
};
use crate::{
    core::{
        admission::{HALF, Owner},
        server::Server,
        store::{Condition, Found, SealedStore, Table, Write, Written},
    },
    transport::http::http_error::HttpError,
};

/// Seconds by which the clocks of replicas may differ.
const CLOCK_SKEW: u64 = 60;

/// The ended sessions of one endpoint.
pub(super) struct EndedSessions {
    store: SealedStore,
    table: Table,
    /// Whether sessions go on while the store cannot be reached.
    allows_unchecked: bool,
}

impl EndedSessions {
    /// For this many sessions, of which one owner may have half; `None` without a store that replicas share.
    pub(super) fn new(server: &Server, sessions: usize) -> Option<Self> {
        let (store, stores) = (server.store(), &server.options().stores);
        store.is_shared().then(|| Self {
            store: store.clone(),
            table: Table::new("sessions", sessions, usize::MAX, HALF),
            allows_unchecked: stores.allows_unchecked_sessions,
        })
    }

    /// Checks that a session has not ended.
    ///
    /// # Errors
    /// It has, or that cannot be found out.
    pub(super) async fn check(&self, uid: &SessionUid) -> Result<(), HttpError> {
        match self.store.find(&self.table, &store_key(uid)).await {
            Ok(Found::Nothing) => Ok(()),
            // an entry that another version of this crate wrote says the same
            Ok(_) => Err(HttpError::unknown_session()),
            Err(error) if self.allows_unchecked => {
                tracing::debug!(%error, "a session goes on that may have ended");
                Ok(())
            }
            Err(error) => {
                tracing::debug!(%error, "whether a session has ended cannot be looked up");
                Err(unavailable())
            }
        }
    }

    /// Adds a session, until its id expires.
    ///
    /// # Errors
    /// The owner's share is full, or the store cannot be reached.
    pub(super) async fn add(&self, session: &Session, owner: &Owner) -> Result<(), HttpError> {
        let seconds_left = session.expires.saturating_sub(unix_time());
        let write = Write {
            bytes: b"",
            owner: owner.as_str(),
            expires_in: Duration::from_secs(seconds_left.saturating_add(CLOCK_SKEW)),
            condition: Condition::Always,
        };
        match self.store.put(&self.table, &store_key(&session.uid), write).await {
            Ok(Written::Full) => Err(HttpError::method_not_allowed("POST")),
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "the end of a session cannot be recorded");
                Err(unavailable())
            }
        }
    }
}

fn unavailable() -> HttpError {
    HttpError::unavailable("sessions cannot be looked up at the moment\ntry again")
}

fn store_key(uid: &SessionUid) -> String {
    URL_SAFE_NO_PAD.encode(uid)
}
