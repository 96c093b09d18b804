//! Subscriptions as the store has them, in memory or shared. Keys are digests; which there are is in lists, one for each
//! first digit of them.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{endpoint::DeliveryFailure, secret::Secret};
use crate::{
    capability::events::ring::ReadPosition,
    core::{
        config::LONGEST,
        connection::StoredPrincipal,
        crypto::hex,
        store::{Record, Table},
    },
};

/// How long an old secret signs besides a new one.
const ROTATION: Duration = Duration::from_secs(5 * 60);
/// How long an endpoint that has repeated a challenge needs no other one.
const VERIFIED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an ended subscription is kept: it cannot be removed only if it is still the same.
const ENDED: Duration = Duration::from_secs(1);
/// The same of one whose principal has lost access: the process that delivers tells its endpoint.
const REVOKED: Duration = Duration::from_secs(30);
/// Bytes of one list of keys.
const MAX_LIST: usize = 64 << 20;

/// A digest of what a subscription is: who, where, what and with which arguments. In hexadecimal digits.
pub(super) type WebhookKey = Arc<str>;

/// A digest of parts that are kept apart.
pub(super) fn digest(parts: &[&str]) -> WebhookKey {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(hash.finalize()).into()
}

/// A subscription.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredWebhook {
    /// `id` on the wire.
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    pub(super) url: Box<str>,
    /// As the client has sent them.
    pub(super) arguments: Arc<str>,
    pub(super) caller: StoredPrincipal,
    pub(super) owner: Arc<str>,
    pub(super) secret: Secret,
    /// The secret before, and until when it signs.
    pub(super) previous: Option<(Secret, SystemTime)>,
    /// `None` if it does not expire.
    pub(super) expires: Option<SystemTime>,
    /// When it was made: another one with the same key has another time.
    pub(super) since: SystemTime,
    pub(super) progress: Progress,
    /// How many gaps its client was told of.
    pub(super) told_gaps: u64,
    pub(super) has_ended: bool,
    /// Whether it has ended since its principal has lost access, and its endpoint was not told yet.
    pub(super) is_revoked: bool,
}

/// What became of the events of a subscription.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Everything before it was delivered, or given up.
    pub(super) position: ReadPosition,
    pub(super) last_delivery: Option<SystemTime>,
    pub(super) failure: Option<DeliveryFailure>,
    pub(super) failed_since: Option<SystemTime>,
    /// How many gaps there were.
    pub(super) gaps: u64,
}

impl Progress {
    pub(super) fn at(position: ReadPosition) -> Self {
        Self { position, last_delivery: None, failure: None, failed_since: None, gaps: 0 }
    }
}

impl StoredWebhook {
    /// How long it lasts, unless it is renewed.
    pub(super) fn left(&self) -> Duration {
        let left = |expires: SystemTime| expires.duration_since(SystemTime::now()).unwrap_or_default();
        self.expires.map_or(LONGEST, left)
    }

    /// Whether it was neither ended nor has expired.
    pub(super) fn is_alive(&self) -> bool {
        !self.has_ended && !self.left().is_zero()
    }

    /// Takes over what its client has sent again; whether that has to be told of a gap. `progress` is what it has reached, if
    /// that is known better.
    pub(super) fn renew(&mut self, sent: &Self, progress: Option<Progress>) -> bool {
        if self.secret != sent.secret {
            let previous = std::mem::replace(&mut self.secret, sent.secret.clone());
            self.previous = Some((previous, SystemTime::now() + ROTATION));
        }
        (self.caller, self.expires) = (sent.caller.clone(), sent.expires);
        if let Some(progress) = progress {
            self.progress = progress;
        }
        let has_gap = self.progress.gaps > self.told_gaps;
        self.told_gaps = self.told_gaps.max(self.progress.gaps);
        has_gap
    }

    /// The secret, and the one before as long as it signs.
    pub(super) fn secrets(&self) -> [Option<Secret>; 2] {
        let previous = self.previous.as_ref().filter(|(_, until)| SystemTime::now() < *until);
        [Some(self.secret.clone()), previous.map(|(secret, _)| secret.clone())]
    }
}

impl Record for StoredWebhook {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn expires_in(&self) -> Duration {
        match (self.has_ended, self.is_revoked) {
            (false, _) => self.left().max(ENDED),
            (true, false) => ENDED,
            (true, true) => REVOKED,
        }
    }
}

/// The keys of subscriptions that begin with the same digit.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct KeyList(pub(super) BTreeSet<WebhookKey>);

impl KeyList {
    /// The names of all lists.
    pub(super) fn names() -> impl Iterator<Item = String> {
        (0..16).map(|digit| format!("{digit:x}"))
    }

    /// The name of the list that has a key.
    pub(super) fn of(key: &str) -> &str {
        key.get(..1).unwrap_or_default()
    }

    pub(super) fn table() -> Table {
        Table::new("webhook-indexes", Self::names().count(), MAX_LIST, 100)
    }
}

impl Record for KeyList {
    fn owner(&self) -> &str {
        // the only owner, which has all of the table
        "local"
    }

    fn expires_in(&self) -> Duration {
        LONGEST
    }
}

/// That an endpoint has repeated a challenge for a principal.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct VerifiedEndpoint {
    pub(super) owner: Arc<str>,
}

impl Record for VerifiedEndpoint {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn expires_in(&self) -> Duration {
        VERIFIED_FOR
    }
}
