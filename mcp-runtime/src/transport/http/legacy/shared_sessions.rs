//! State of a session that replicas share: its end and its log level, which each of its requests reads; and, if it uses
//! them, its resource subscriptions and the process that has its standalone streams. Each change replaces the version that
//! it was made from, so that no change is lost and an ended session does not come back.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{resumable::store_key, session_id::SessionUid, sessions::unix_time};
use crate::core::{
    admission::{Full, Owner},
    changes::SubscriptionLimits,
    connection::SubscribeError,
    protocol::LogLevel,
    store::{Condition, Found, SharedStore, StoreError, Table, Value, Write, Written},
};

/// Seconds by which the clocks of replicas may differ.
const CLOCK_SKEW: u64 = 60;
/// How often a change is rebuilt because another one came first.
const ATTEMPTS: usize = 32;
/// For how long it is kept which process has the standalone streams of a session, unless the process says so again.
const CLAIM: Duration = Duration::from_secs(15 * 60);
/// How often it does.
pub(super) const CLAIM_AGAIN: Duration = Duration::from_secs(5 * 60);

const ENDED: u8 = 1;
/// The state of a session that another version of this crate wrote: it may have ended, so a client opens a new one.
const UNREADABLE: SharedSession = SharedSession { has_ended: true, level: None };

/// The stored states of the sessions of one endpoint.
pub(super) struct SharedSessions {
    store: Arc<dyn SharedStore>,
    sessions: Table,
    listeners: Table,
    limits: SubscriptionLimits,
    /// Whether sessions go on while the store cannot be reached.
    pub(super) allows_unchecked: bool,
}

/// The stored state of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SharedSession {
    pub(super) has_ended: bool,
    pub(super) level: Option<LogLevel>,
}

/// The outcome of a change of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionChange {
    Done,
    /// The session has ended.
    Ended,
    /// There is too much to be kept, of all clients or of this one.
    Full,
}

/// Which changes the client of a session gets, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listener {
    /// The process that has its standalone streams.
    pub(super) process: Option<String>,
    /// The resources that it subscribes to, in its own spelling.
    pub(super) uris: Vec<String>,
}

/// A change of a listener that was made.
#[derive(Debug)]
pub(super) struct ListenerChange {
    pub(super) before: Listener,
    pub(super) after: Listener,
    /// The version afterwards; 0 if nothing is kept.
    pub(super) version: u64,
}

/// A session whose listener changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listening<'a> {
    pub(super) uid: &'a SessionUid,
    /// When the session expires, in seconds since 1970.
    pub(super) expires: u64,
    pub(super) owner: &'a Owner,
}

impl SharedSession {
    fn encode(self) -> [u8; 2] {
        let level = self.level.and_then(|level| LogLevel::ALL.iter().position(|known| *known == level));
        let level = level.and_then(|index| u8::try_from(index + 1).ok()).unwrap_or_default();
        [if self.has_ended { ENDED } else { 0 }, level]
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let [flags, level] = bytes.try_into().ok()?;
        let level = usize::from(level).checked_sub(1).and_then(|index| LogLevel::ALL.get(index).copied());
        Some(Self { has_ended: flags & ENDED != 0, level })
    }
}

/// For how long something of a session is kept that expires then.
fn time_left(expires: u64) -> Duration {
    Duration::from_secs(expires.saturating_sub(unix_time()) + CLOCK_SKEW)
}

impl SharedSessions {
    /// For this many sessions, of which one owner may have that share.
    pub(super) fn new(
        store: &Arc<dyn SharedStore>,
        (sessions, share_percent): (usize, u8),
        limits: SubscriptionLimits,
        allows_unchecked: bool,
    ) -> Self {
        Self {
            store: store.clone(),
            sessions: Table::new("sessions", sessions, usize::MAX, share_percent),
            listeners: Table::new("listeners", sessions, limits.bytes, share_percent),
            limits,
            allows_unchecked,
        }
    }

    async fn find(&self, uid: &SessionUid) -> Result<(SharedSession, Option<u64>), StoreError> {
        match self.store.find(&self.sessions, &store_key(uid)).await? {
            Found::Value(Value { bytes, version }) => {
                Ok((SharedSession::decode(&bytes).unwrap_or(UNREADABLE), Some(version)))
            }
            Found::OtherVersion => Ok((UNREADABLE, None)),
            Found::Nothing => Ok((SharedSession::default(), None)),
        }
    }

    /// Reads the stored state of a session.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn get(&self, uid: &SessionUid) -> Result<SharedSession, StoreError> {
        Ok(self.find(uid).await?.0)
    }

    /// Changes what is kept of a session that has not ended.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn change(
        &self,
        Listening { uid, expires, owner }: Listening<'_>,
        change: impl Fn(&mut SharedSession) + Send,
    ) -> Result<SessionChange, StoreError> {
        for _ in 0..ATTEMPTS {
            let (before, version) = self.find(uid).await?;
            let mut after = before;
            change(&mut after);
            if after == before {
                return Ok(SessionChange::Done);
            }
            if before.has_ended {
                return Ok(SessionChange::Ended);
            }
            let write = Write {
                bytes: &after.encode(),
                owner: owner.as_str(),
                expires_in: time_left(expires),
                condition: version.map_or(Condition::Absent, Condition::Version),
            };
            match self.store.put(&self.sessions, &store_key(uid), write).await? {
                Written::Stored => return Ok(SessionChange::Done),
                Written::Full => return Ok(SessionChange::Full),
                Written::Conflict => {}
            }
        }
        Err("a session changes too often".into())
    }

    /// Which changes the client of a session gets, and the version of that.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn listener(&self, uid: &SessionUid) -> Result<(Listener, u64), StoreError> {
        Ok(match self.store.get(&self.listeners, &store_key(uid)).await? {
            Some(Value { bytes, version }) => (serde_json::from_slice(&bytes)?, version),
            None => (Listener::default(), 0),
        })
    }

    /// Changes that, or keeps it for longer.
    ///
    /// # Errors
    /// The store cannot be reached. The inner error is that of the change itself, or says that the state is too large.
    pub(super) async fn change_listener(
        &self,
        Listening { uid, expires, owner }: Listening<'_>,
        change: impl Fn(&mut Listener) -> Result<(), SubscribeError> + Send,
    ) -> Result<Result<ListenerChange, SubscribeError>, StoreError> {
        for _ in 0..ATTEMPTS {
            let (before, version) = self.listener(uid).await?;
            let mut after = before.clone();
            if let Err(error) = change(&mut after) {
                return Ok(Err(error));
            }
            // a claim alone expires, unless it is made again
            let is_claim = after.process.is_some() && after.uris.is_empty();
            if after == before && !is_claim {
                return Ok(Ok(ListenerChange { before, after, version }));
            }
            let expires_in = match (&after.process, after.uris.is_empty()) {
                // nothing is left of it
                (None, true) => Duration::from_secs(1),
                (Some(_), true) => CLAIM.min(time_left(expires)),
                _ => time_left(expires),
            };
            let condition = if version == 0 { Condition::Absent } else { Condition::Version(version) };
            let bytes = serde_json::to_vec(&after)?;
            let write = Write { bytes: &bytes, owner: owner.as_str(), expires_in, condition };
            match self.store.put(&self.listeners, &store_key(uid), write).await? {
                Written::Stored => {
                    let version = condition.next_version();
                    return Ok(Ok(ListenerChange { before, after, version }));
                }
                Written::Full => {
                    return Ok(Err(SubscribeError::TooManyBytes(self.limits.bytes, Full::Share)));
                }
                Written::Conflict => {}
            }
        }
        Err("the subscriptions of a session change too often".into())
    }

    /// Subscribes a session to a resource, or ends its subscription.
    ///
    /// # Errors
    /// As of [`change_listener`](Self::change_listener).
    pub(super) async fn subscribe(
        &self,
        of: Listening<'_>,
        uri: &str,
        is_on: bool,
    ) -> Result<Result<ListenerChange, SubscribeError>, StoreError> {
        let limit = self.limits.uris;
        self.change_listener(of, |listener| {
            let uris = &mut listener.uris;
            match (uris.iter().position(|known| known == uri), is_on) {
                (Some(_), true) | (None, false) => {}
                (Some(position), false) => drop(uris.remove(position)),
                (None, true) if uris.len() >= limit => return Err(SubscribeError::TooMany(limit)),
                (None, true) => uris.push(uri.to_owned()),
            }
            Ok(())
        })
        .await
    }

    /// Forgets what a session that has ended was told of.
    pub(super) async fn forget_listener(&self, uid: &SessionUid) {
        // otherwise it expires
        if let Err(error) = self.store.remove(&self.listeners, &store_key(uid)).await {
            tracing::debug!(%error, "the subscriptions of a session that has ended are still stored");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_session_is_decoded_as_it_was_encoded() {
        let all = [None].into_iter().chain(LogLevel::ALL.map(Some));
        for (n, level) in all.enumerate() {
            let session = SharedSession { has_ended: n % 2 == 0, level };
            assert_eq!(SharedSession::decode(&session.encode()), Some(session));
        }
        assert_eq!(SharedSession::decode(b"1"), None);
    }
}
