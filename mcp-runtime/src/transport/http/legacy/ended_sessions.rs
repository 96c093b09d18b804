//! The sessions that have ended, where replicas share a store: each request of a session asks it.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{
    session_id::{Session, SessionUid},
    sessions::unix_time,
};
use crate::core::{
    admission::{HALF, Owner},
    store::{Condition, Found, SealedStore, StoreError, Table, Write, Written},
};

/// Seconds by which the clocks of replicas may differ.
const CLOCK_SKEW: u64 = 60;

/// The ended sessions of one endpoint.
pub(super) struct EndedSessions {
    store: SealedStore,
    table: Table,
    /// Whether sessions go on while the store cannot be reached.
    pub(super) allows_unchecked: bool,
}

impl EndedSessions {
    /// For this many sessions, of which one owner may have half.
    pub(super) fn new(store: &SealedStore, sessions: usize, allows_unchecked: bool) -> Self {
        let table = Table::new("sessions", sessions, usize::MAX, HALF);
        Self { store: store.clone(), table, allows_unchecked }
    }

    /// Whether a session has ended.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn contains(&self, uid: &SessionUid) -> Result<bool, StoreError> {
        // an entry that another version of this crate wrote says the same
        Ok(!matches!(self.store.find(&self.table, &store_key(uid)).await?, Found::Nothing))
    }

    /// Adds a session, until its id expires.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn add(&self, session: &Session, owner: &Owner) -> Result<Written, StoreError> {
        let seconds_left = session.expires.saturating_sub(unix_time());
        let write = Write {
            bytes: b"",
            owner: owner.as_str(),
            expires_in: Duration::from_secs(seconds_left.saturating_add(CLOCK_SKEW)),
            condition: Condition::Always,
        };
        self.store.put(&self.table, &store_key(&session.uid), write).await
    }
}

fn store_key(uid: &SessionUid) -> String {
    URL_SAFE_NO_PAD.encode(uid)
}
