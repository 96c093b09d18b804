//! The record of calls that have consumed their client responses, and of proofs: each is used at most once, at whichever
//! replica. A use that cannot be checked is refused.

use std::time::{Duration, SystemTime};

use super::{Condition, SealedStore, Table, Write, Written};
use crate::core::{
    admission::{HALF, Owner},
    log_limit::{LogLimit, LogLine},
    unix_time::unix_millis,
};

/// Entries are kept for longer than they are valid, since clocks of replicas differ.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Records what was used.
pub(crate) struct SingleUse {
    store: SealedStore,
    table: Table,
    /// The time from which on uses are known in memory.
    since: Option<SystemTime>,
}

/// A call whose client responses are used, or a proof.
#[derive(Clone, Copy)]
pub(crate) struct ConsumedCall<'a> {
    /// Equal for all retries of a call.
    pub(crate) id: &'a str,
    pub(crate) owner: &'a Owner,
    /// When the server first sent requests to the call's client.
    pub(crate) started: SystemTime,
    /// From then on the call cannot be retried.
    pub(crate) expires: SystemTime,
}

impl SingleUse {
    /// Records as many in a table of that name, of which one owner may have half.
    pub(crate) fn new(store: &SealedStore, table: &str, entries: usize, now: SystemTime) -> Self {
        // as precise as the start of a call, so that one of the same moment is not refused
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(unix_millis(now));
        Self {
            store: store.clone(),
            table: Table::new(table, entries, usize::MAX, HALF),
            since: (!store.is_shared()).then_some(since),
        }
    }

    /// Marks a call as used, at least until it expires. Returns whether it was not before; `false` as well if the share
    /// of its owner is full, or the store cannot be reached.
    pub(crate) async fn consume(&self, call: ConsumedCall<'_>) -> bool {
        if self.since.is_some_and(|since| call.started < since) {
            static LIMIT: LogLimit = LogLimit::new();
            if let Some(LogLine { suppressed }) = LIMIT.line() {
                tracing::warn!(
                    suppressed,
                    "a call that was started before this process may have used its responses there"
                );
            }
            return false;
        }
        let left = call.expires.duration_since(SystemTime::now()).unwrap_or_default();
        let write = Write {
            bytes: b"",
            owner: call.owner.as_str(),
            expires_in: left + CLOCK_SKEW,
            condition: Condition::Absent,
        };
        match self.store.put(&self.table, call.id, write).await {
            Ok(written) => written == Written::Stored,
            Err(error) => {
                static LIMIT: LogLimit = LogLimit::new();
                if let Some(LogLine { suppressed }) = LIMIT.line() {
                    tracing::warn!(suppressed, %error, "cannot check whether the call's responses were used already: the call is refused");
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn consume(used: &SingleUse, id: &str, owner: &str, seconds: u64) -> bool {
        let (owner, now) = (Owner::principal(owner.into()), SystemTime::now());
        let expires = now + Duration::from_secs(seconds);
        used.consume(ConsumedCall { id, owner: &owner, started: now, expires }).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_with_a_full_share_is_refused_until_a_call_expires() {
        let used = SingleUse::new(&SealedStore::in_memory(), "calls", 4, SystemTime::now());
        assert!(consume(&used, "a", "ada", 100).await);
        assert!(!consume(&used, "a", "ada", 100).await, "consumed before");
        assert!(consume(&used, "b", "ada", 200).await);
        tokio::time::advance(Duration::from_secs(159)).await;
        assert!(!consume(&used, "c", "ada", 100).await, "her share is full");
        assert!(consume(&used, "d", "bob", 100).await);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(consume(&used, "c", "ada", 100).await);
    }

    #[tokio::test]
    async fn a_call_that_began_before_the_store_in_memory_is_refused() {
        let now = SystemTime::now();
        let used = SingleUse::new(&SealedStore::in_memory(), "calls", 4, now);
        let (owner, expires) = (Owner::local(), now + Duration::from_secs(100));
        let early = now - Duration::from_secs(1);
        assert!(
            !used.consume(ConsumedCall { id: "a", owner: &owner, started: early, expires }).await,
            "it may have been consumed in an earlier process"
        );
        assert!(used.consume(ConsumedCall { id: "b", owner: &owner, started: now, expires }).await);
    }
}
