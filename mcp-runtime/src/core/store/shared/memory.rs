//! A store in memory for several servers of one process, and the reference for stores that replicas share. Its contents are
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
    Append, Appended, LogPage, MAX_MESSAGES, MAX_POSITION, MemoryLogs, Publisher, Shared, Stored,
    Subscription, Table, Take, Taken, Value, Write, Written,
};
use crate::core::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    store::memory_tables::MemoryTables,
    sync::Mutex,
};

/// A store in the memory of this process, for tests and for servers in one process; clones are the same store.
///
/// Of several servers in one process, each keeps what it has to itself, unless they get clones of one store.
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
    tables: MemoryTables,
    rates: Mutex<HashMap<Arc<str>, MemoryRates>>,
    logs: Mutex<HashMap<Arc<str>, MemoryLogs>>,
    topics: Mutex<HashMap<Box<str>, Vec<Publisher>>>,
}

/// By owner and key, when everything will have come back, which is when an entry expires.
type MemoryRates = OwnedTable<(Arc<str>, Arc<str>), Instant, Instant>;

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
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
        self.0.tables.clear();
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
        done(self.0.tables.get(table, key))
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        done(self.0.tables.put(table, key, &write))
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        self.0.tables.remove(table, key);
        done(())
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        done(self.take_now(table, key, take))
    }

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        if !(1..=MAX_POSITION).contains(&append.position) {
            return Box::pin(ready(Err("the position is out of range".into())));
        }
        let mut logs = self.0.logs.lock();
        let logs = logs.entry(table.name().into()).or_insert_with(|| MemoryLogs::new(table));
        done(logs.append(Instant::now(), table, log, &append))
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        let mut logs = self.0.logs.lock();
        let logs = logs.get_mut(table.name());
        done(logs.and_then(|logs| logs.read_after(Instant::now(), log, position, limit)))
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        self.publish_now(topic, message);
        done(())
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        done(self.subscribe_now(topic))
    }
}
