//! The store in memory: the default of a server, and the reference for stores that replicas share. Its contents are
//! bounded by its tables.

use std::{
    collections::HashMap,
    fmt,
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Condition, Stored,
    memory_logs::LogTables,
    shared::{
        Append, Appended, LogPage, MAX_MESSAGES, Publisher, Shared, Subscription, Table, Take, Taken, Value,
        Write, Written,
    },
};
use crate::core::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    sync::Mutex,
};

/// A store in the memory of this process, for tests and for servers in one process; clones are the same store.
///
/// A server without [`shared`](crate::ServerBuilder::shared) has one. Of several servers in one process, each has a store of its
/// own unless they get clones of one.
///
/// ```
/// use mcp_runtime::{prelude::*, store::Memory};
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let store = Memory::default();
/// let key: [u8; 32] = std::array::from_fn(|n| n as u8);
/// let replica = || mcp_runtime::server!().shared(store.clone()).stores(|stores| stores.keys([key])).build();
/// let (one, two) = (replica()?, replica()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Memory(Arc<MemoryInner>);

#[derive(Default)]
struct MemoryInner {
    tables: Mutex<HashMap<Arc<str>, MemoryTable>>,
    rates: Mutex<HashMap<Arc<str>, MemoryRates>>,
    logs: LogTables,
    topics: Mutex<HashMap<Box<str>, Vec<Publisher>>>,
}

type MemoryTable = OwnedTable<Arc<str>, Value, Instant>;

/// By owner and key, when everything will have come back, which is when an entry expires.
type MemoryRates = OwnedTable<(Arc<str>, Arc<str>), Instant, Instant>;

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
    fn get_now(&self, table: &Table, key: &str) -> Option<Value> {
        let mut tables = self.0.tables.lock();
        let values = tables.get_mut(table.name())?;
        values.expire(Instant::now());
        values.get(key).cloned()
    }

    fn put_now(&self, table: &Table, key: &str, write: &Write<'_>) -> Written {
        let now = Instant::now();
        let mut tables = self.0.tables.lock();
        if !tables.contains_key(table.name()) {
            let values = OwnedTable::new(table.value_quota(), table.byte_quota());
            tables.insert(table.name().into(), values);
        }
        let Some(values) = tables.get_mut(table.name()) else { return Written::Full };
        values.expire(now);
        let version = values.get(key).map(|value| value.version);
        let holds = match write.condition {
            Condition::Always => true,
            Condition::Absent => version.is_none(),
            Condition::Version(expected) => version == Some(expected),
        };
        if !holds {
            return Written::Conflict;
        }
        let entry = OwnedEntry {
            owner: Owner::from_text(write.owner.into()),
            bytes: write.bytes.len(),
            expires: now + write.expires_in,
            value: Value { bytes: write.bytes.to_vec(), version: write.condition.next_version() },
        };
        values.put(key.into(), entry).map_or(Written::Full, |()| Written::Stored)
    }

    fn take_now(&self, table: &Table, key: &str, take: Take<'_>) -> Taken {
        let now = Instant::now();
        let mut tables = self.0.rates.lock();
        let of_table = || OwnedTable::new(table.value_quota(), Quota::of_each_owner(usize::MAX));
        let rates = tables.entry(table.name().into()).or_insert_with(of_table);
        rates.expire(now);
        let key: (Arc<str>, Arc<str>) = (take.owner.into(), key.into());
        let restored_in = rates.get(&key).map_or(Duration::ZERO, |restored| restored.duration_since(now));
        let restored = match take.rate.take(take.times, restored_in) {
            Ok(restored_in) => now + restored_in,
            Err(wait) => return Taken::Wait(wait),
        };
        let owner = Owner::from_text(take.owner.into());
        loop {
            let entry = OwnedEntry { owner: owner.clone(), bytes: 0, expires: restored, value: restored };
            match rates.put(key.clone(), entry) {
                Ok(()) => return Taken::Granted,
                Err(Full::Table) if rates.pop_first().is_some() => {}
                Err(_) => return Taken::Full,
            }
        }
    }

    fn publish_now(&self, topic: &str, message: &[u8]) {
        let mut topics = self.0.topics.lock();
        let Some(publishers) = topics.get_mut(topic) else { return };
        let message: Arc<[u8]> = message.into();
        publishers.retain(|publisher| publisher.send(message.clone()));
        if publishers.is_empty() {
            topics.remove(topic);
        }
    }

    fn subscribe_now(&self, topic: &str) -> Subscription {
        let (publisher, subscription) = Subscription::new(MAX_MESSAGES);
        let mut topics = self.0.topics.lock();
        topics.retain(|_, publishers| {
            publishers.retain(|publisher| !publisher.is_closed());
            !publishers.is_empty()
        });
        topics.entry(topic.into()).or_default().push(publisher);
        subscription
    }
}

#[cfg(test)]
impl Memory {
    /// Loses everything; a store that was started again tells its subscribers that they may have missed something.
    pub(super) fn forget(&self, is_restarted: bool) {
        self.0.tables.lock().clear();
        if is_restarted {
            self.0.topics.lock().values().flatten().for_each(Publisher::missed);
        }
    }
}

fn done<'a, T: Send + 'a>(value: T) -> Stored<'a, T> {
    let value: Ready<Result<T, _>> = ready(Ok(value));
    Box::pin(value)
}

impl Shared for Memory {
    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        done(self.get_now(table, key))
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        done(self.put_now(table, key, &write))
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        if let Some(values) = self.0.tables.lock().get_mut(table.name()) {
            values.remove(key);
        }
        done(())
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        done(self.take_now(table, key, take))
    }

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        self.0.logs.append(table, log, &append)
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        self.0.logs.read_after(table, log, position, limit)
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        self.publish_now(topic, message);
        done(())
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        done(self.subscribe_now(topic))
    }
}
