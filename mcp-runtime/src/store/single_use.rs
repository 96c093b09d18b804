//! The record of calls that have consumed their client responses: each call does it at most once.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use super::StoreFuture;
use crate::sync::Mutex;

/// Entries are kept for longer than they are valid, since clocks of replicas differ.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Records the calls that have consumed their client responses; see
/// [`Context::consume_once`](crate::Context::consume_once).
///
/// The default store is in the server's memory. Implement this for a store that replicas share if calls may reach any
/// of them.
pub trait SingleUse: Send + Sync {
    /// Marks the call of that id as consumed, at least until `expires`. Returns whether it was not before; `false` as
    /// well if the store is full or cannot be reached.
    fn consume<'a>(&'a self, id: &'a str, expires: SystemTime) -> StoreFuture<'a, bool>;
}

/// The store in memory.
#[derive(Debug)]
pub(crate) struct MemorySingleUse {
    limit: usize,
    expiry: Mutex<HashMap<Box<str>, SystemTime>>,
}

impl MemorySingleUse {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, expiry: Mutex::default() }
    }

    fn consume_at(&self, id: &str, expires: SystemTime, now: SystemTime) -> bool {
        let mut expiry = self.expiry.lock();
        if expiry.len() >= self.limit {
            expiry.retain(|_, expires| *expires > now);
        }
        if expiry.len() >= self.limit || expiry.contains_key(id) {
            return false;
        }
        expiry.insert(id.into(), expires + CLOCK_SKEW);
        true
    }
}

impl SingleUse for MemorySingleUse {
    fn consume<'a>(&'a self, id: &'a str, expires: SystemTime) -> StoreFuture<'a, bool> {
        Box::pin(std::future::ready(self.consume_at(id, expires, SystemTime::now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_refuses_calls_until_one_expires() {
        let store = MemorySingleUse::new(2);
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        assert!(store.consume_at("a", at(100), at(0)));
        assert!(!store.consume_at("a", at(100), at(0)), "consumed before");
        assert!(store.consume_at("b", at(200), at(0)));
        assert!(!store.consume_at("c", at(200), at(159)), "full");
        assert!(store.consume_at("c", at(200), at(161)));
    }
}
