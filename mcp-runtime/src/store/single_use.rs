//! Which calls have used the answers they got.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use super::StoreFuture;
use crate::sync::Mutex;

/// A clock that lags behind must not forget too early.
const SKEW: Duration = Duration::from_secs(60);

/// Remembers which calls have used their answers; see [`Context::consume_once`](crate::Context::consume_once).
///
/// The server's own store is in its memory. Implement this over a store that replicas share if calls may reach any of
/// them.
pub trait SingleUse: Send + Sync {
    /// Marks the call of that id as used, at least until `expires`; whether it was not before.
    ///
    /// When in doubt (no room, no connection) the answer is `false`.
    fn consume<'a>(&'a self, id: &'a str, expires: SystemTime) -> StoreFuture<'a, bool>;
}

/// The calls that have used their answers, in memory.
#[derive(Debug)]
pub(crate) struct MemorySingleUse {
    limit: usize,
    until: Mutex<HashMap<Box<str>, SystemTime>>,
}

impl MemorySingleUse {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, until: Mutex::default() }
    }

    fn take(&self, id: &str, expires: SystemTime, now: SystemTime) -> bool {
        let mut until = self.until.lock();
        if until.len() >= self.limit {
            until.retain(|_, expires| *expires > now);
        }
        if until.len() >= self.limit || until.contains_key(id) {
            return false;
        }
        until.insert(id.into(), expires + SKEW);
        true
    }
}

impl SingleUse for MemorySingleUse {
    fn consume<'a>(&'a self, id: &'a str, expires: SystemTime) -> StoreFuture<'a, bool> {
        Box::pin(std::future::ready(self.take(id, expires, SystemTime::now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_memory_refuses_until_something_expires() {
        let used = MemorySingleUse::new(2);
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        assert!(used.take("a", at(100), at(0)));
        assert!(!used.take("a", at(100), at(0)), "used before");
        assert!(used.take("b", at(200), at(0)));
        assert!(!used.take("c", at(200), at(159)), "full");
        assert!(used.take("c", at(200), at(161)));
    }
}
