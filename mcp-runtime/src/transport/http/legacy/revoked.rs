//! Sessions that their clients ended before they expired. The HTTP transport asks it with each request.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use super::Sid;
use crate::sync::RwLock;

/// Ended sessions, each kept until it would have expired; bounded.
#[derive(Debug)]
pub(crate) struct Revoked {
    limit: usize,
    /// Set with the first revocation, so that servers without one never take the lock.
    any: AtomicBool,
    until: RwLock<Until>,
}

#[derive(Debug, Default)]
struct Until {
    sessions: HashMap<Sid, u64>,
    /// The first of these times, so that a full set is not searched in vain.
    next: u64,
}

impl Revoked {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, any: AtomicBool::new(false), until: RwLock::default() }
    }

    /// Ends a session; `false` when there is no room to remember it.
    pub(crate) fn revoke(&self, sid: Sid, expires: u64, now: u64) -> bool {
        let mut until = self.until.write();
        if until.sessions.len() >= self.limit && until.next <= now {
            until.sessions.retain(|_, expires| *expires > now);
            until.next = until.sessions.values().min().copied().unwrap_or(u64::MAX);
        }
        if until.sessions.len() >= self.limit {
            return false;
        }
        until.next = if until.sessions.is_empty() { expires } else { until.next.min(expires) };
        until.sessions.insert(sid, expires);
        self.any.store(true, Ordering::Release);
        true
    }

    pub(crate) fn contains(&self, sid: &Sid) -> bool {
        self.any.load(Ordering::Acquire) && self.until.read().sessions.contains_key(sid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_refuses_until_something_expires() {
        let revoked = Revoked::new(2);
        assert!(!revoked.contains(&[1; 16]));
        assert!(revoked.revoke([1; 16], 100, 0));
        assert!(revoked.revoke([2; 16], 200, 0));
        assert!(!revoked.revoke([3; 16], 300, 99));
        assert!(revoked.contains(&[1; 16]) && !revoked.contains(&[3; 16]));
        assert!(revoked.revoke([3; 16], 300, 100));
        assert!(!revoked.contains(&[1; 16]) && revoked.contains(&[2; 16]) && revoked.contains(&[3; 16]));
    }
}
