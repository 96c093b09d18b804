//! Sessions that their clients ended before they expired.

use crate::sync::RwLock;

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use super::session_id::SessionUid;

/// A bounded set of ended sessions, each kept until it would have expired.
#[derive(Debug)]
pub(crate) struct RevokedSessions {
    limit: usize,
    /// Set by the first revocation, so that servers without one never take the lock.
    any: AtomicBool,
    until: RwLock<Revocations>,
}

#[derive(Debug, Default)]
struct Revocations {
    /// When each session would have expired.
    sessions: HashMap<SessionUid, u64>,
    /// The earliest of these times, so that a full set is not searched in vain.
    first_expiry: u64,
}

impl RevokedSessions {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, any: AtomicBool::new(false), until: RwLock::default() }
    }

    /// Ends a session; `false` if the set is full.
    pub(crate) fn revoke(&self, uid: SessionUid, expires: u64, now: u64) -> bool {
        let mut until = self.until.write();
        if until.sessions.len() >= self.limit && until.first_expiry <= now {
            until.sessions.retain(|_, expires| *expires > now);
            until.first_expiry = until.sessions.values().min().copied().unwrap_or(u64::MAX);
        }
        if until.sessions.len() >= self.limit {
            return false;
        }
        until.first_expiry =
            if until.sessions.is_empty() { expires } else { until.first_expiry.min(expires) };
        until.sessions.insert(uid, expires);
        self.any.store(true, Ordering::Release);
        true
    }

    pub(crate) fn contains(&self, sid: &SessionUid) -> bool {
        self.any.load(Ordering::Acquire) && self.until.read().sessions.contains_key(sid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_refuses_until_something_expires() {
        let revoked = RevokedSessions::new(2);
        assert!(!revoked.contains(&[1; 16]));
        assert!(revoked.revoke([1; 16], 100, 0));
        assert!(revoked.revoke([2; 16], 200, 0));
        assert!(!revoked.revoke([3; 16], 300, 99));
        assert!(revoked.contains(&[1; 16]) && !revoked.contains(&[3; 16]));
        assert!(revoked.revoke([3; 16], 300, 100));
        assert!(!revoked.contains(&[1; 16]) && revoked.contains(&[2; 16]) && revoked.contains(&[3; 16]));
    }
}
