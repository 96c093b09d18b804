//! The record of calls that have consumed their client responses: each call does it at most once.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::StoreFuture;
use crate::core::{
    admission::{OwnedEntry, OwnedTable, Owner, Quota},
    log_limit::{LogLimit, LogLine},
    sync::Mutex,
};

/// Entries are kept for longer than they are valid, since clocks of replicas differ.
/// Calls that the default store remembers.
pub(crate) const MAX_CALLS: usize = 10_000;

const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Records the calls that have consumed their client responses; see
/// [`Context::consume_once`](crate::Context::consume_once).
///
/// The default store is in the server's memory. Implement this for a store that replicas share if calls may reach any
/// of them, or that outlives the process if calls may be retried after a restart.
pub trait SingleUse: Send + Sync {
    /// Marks a call as consumed, at least until it expires. Returns whether it was not before; `false` as well if the
    /// store is full or cannot be reached.
    fn consume<'a>(&'a self, call: ConsumedCall<'a>) -> StoreFuture<'a, bool>;
}

/// A call whose client responses are used.
#[derive(Debug, Clone, Copy)]
pub struct ConsumedCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) owner: &'a Owner,
    pub(crate) started: SystemTime,
    pub(crate) expires: SystemTime,
}

impl<'a> ConsumedCall<'a> {
    /// A random id: equal for all retries of the call.
    #[must_use]
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// When the server first sent requests to the call's client.
    #[must_use]
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// From then on the call cannot be retried.
    #[must_use]
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// Whose call it is, for stores that give each client a share: a digest of the principal, or an address.
    #[must_use]
    pub fn share(&self) -> &'a str {
        self.owner.as_str()
    }
}

/// The store in memory.
#[derive(Debug)]
pub(crate) struct MemorySingleUse {
    /// What was consumed before is not known.
    created: SystemTime,
    consumed: Mutex<OwnedTable<Arc<str>, (), SystemTime>>,
}

impl MemorySingleUse {
    pub(crate) fn new(calls: Quota, now: SystemTime) -> Self {
        let table = OwnedTable::new(calls, Quota::undivided(usize::MAX));
        // as precise as the start of a call, so that one of the same moment is not refused
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { created: SystemTime::UNIX_EPOCH + Duration::from_millis(millis), consumed: Mutex::new(table) }
    }

    fn consume_at(&self, call: &ConsumedCall<'_>, now: SystemTime) -> bool {
        if call.started < self.created {
            static LIMIT: LogLimit = LogLimit::new();
            if let Some(LogLine { suppressed }) = LIMIT.line() {
                tracing::warn!(
                    suppressed,
                    "a call that was started before this process may have used its responses there"
                );
            }
            return false;
        }
        let mut consumed = self.consumed.lock();
        consumed.expire(now);
        if consumed.get(call.id).is_some() {
            return false;
        }
        let expires = call.expires + CLOCK_SKEW;
        let entry = OwnedEntry { owner: call.owner.clone(), bytes: 0, expires, value: () };
        consumed.put(call.id.into(), entry).is_ok()
    }
}

impl SingleUse for MemorySingleUse {
    fn consume<'a>(&'a self, call: ConsumedCall<'a>) -> StoreFuture<'a, bool> {
        Box::pin(std::future::ready(self.consume_at(&call, SystemTime::now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn consume(store: &MemorySingleUse, id: &str, owner: &str, started: u64, expires: u64, now: u64) -> bool {
        let owner = Owner::principal(owner.into());
        let call = ConsumedCall { id, owner: &owner, started: at(started), expires: at(expires) };
        store.consume_at(&call, at(now))
    }

    #[test]
    fn an_owner_with_a_full_share_is_refused_until_a_call_expires() {
        let store = MemorySingleUse::new(Quota::half(4), at(0));
        assert!(consume(&store, "a", "ada", 0, 100, 0));
        assert!(!consume(&store, "a", "ada", 0, 100, 0), "consumed before");
        assert!(consume(&store, "b", "ada", 0, 200, 0));
        assert!(!consume(&store, "c", "ada", 0, 200, 159), "her share is full");
        assert!(consume(&store, "d", "bob", 0, 200, 159));
        assert!(consume(&store, "c", "ada", 0, 200, 161));
    }

    #[test]
    fn a_call_that_began_before_the_store_is_refused() {
        let store = MemorySingleUse::new(Quota::half(4), at(1000));
        assert!(
            !consume(&store, "a", "ada", 999, 2000, 1001),
            "it may have been consumed in an earlier process"
        );
        assert!(consume(&store, "b", "ada", 1000, 2000, 1001));
    }
}
