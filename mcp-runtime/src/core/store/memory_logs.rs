//! Logs in memory. An owner without room loses only its own logs and entries.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

use super::{Append, Appended, LogEntry, LogPage, Table};
use crate::core::admission::{Owner, Usage};

/// The logs of one table.
pub(crate) struct MemoryLogs {
    logs: HashMap<Arc<str>, MemoryLog>,
    by_expiry: BTreeSet<(Instant, Arc<str>)>,
    /// By owner and when something was appended last.
    order: BTreeMap<(Owner, u64), Arc<str>>,
    clock: u64,
    count: Usage,
    bytes: Usage,
}

struct MemoryLog {
    owner: Owner,
    /// Never empty.
    entries: VecDeque<Arc<[u8]>>,
    /// The position of the newest entry.
    last: u64,
    bytes: usize,
    expires: Instant,
    appended: u64,
}

impl MemoryLog {
    /// Removes the oldest entry unless it is the only one, and returns its size.
    fn drop_first(&mut self) -> Option<usize> {
        let oldest = if self.entries.len() > 1 { self.entries.pop_front() } else { None };
        let size = oldest?.len();
        self.bytes -= size;
        Some(size)
    }
}

impl MemoryLogs {
    pub(crate) fn new(table: &Table) -> Self {
        Self {
            logs: HashMap::new(),
            by_expiry: BTreeSet::new(),
            order: BTreeMap::new(),
            clock: 0,
            count: Usage::new(table.value_quota()),
            bytes: Usage::new(table.byte_quota()),
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some((expires, name)) = self.by_expiry.first()
            && *expires <= now
        {
            let name = name.clone();
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &str) {
        let Some((name, log)) = self.logs.remove_entry(name) else { return };
        self.count.remove(&log.owner, 1);
        self.bytes.remove(&log.owner, log.bytes);
        self.order.remove(&(log.owner, log.appended));
        self.by_expiry.remove(&(log.expires, name));
    }

    /// Appends an entry; see `append` of `Shared`.
    pub(crate) fn append(
        &mut self,
        now: Instant,
        table: &Table,
        name: &str,
        append: &Append<'_>,
    ) -> Appended {
        self.expire(now);
        let size = append.bytes.len();
        let found = self.logs.get(name);
        if let Some(log) = found.filter(|log| log.last + 1 != append.position) {
            return Appended::Conflict(log.last + 1);
        }
        let owner = found.map_or_else(|| Owner::from_text(append.owner.into()), |log| log.owner.clone());
        let share = table.byte_quota().share_of(&owner).min(table.max_bytes());
        if size > append.max_bytes.min(share)
            || table.value_quota().share_of(&owner).min(table.max_values()) == 0
        {
            return Appended::TooLarge;
        }
        self.clock += 1;
        let (appended, expires) = (self.clock, now + append.expires_in);
        let name = match self.logs.get_key_value(name) {
            Some((name, log)) => {
                self.order.remove(&(owner.clone(), log.appended));
                self.by_expiry.remove(&(log.expires, name.clone()));
                name.clone()
            }
            None => {
                self.count.add(&owner, 1);
                name.into()
            }
        };
        let log = self.logs.entry(name.clone()).or_insert_with(|| MemoryLog {
            owner: owner.clone(),
            entries: VecDeque::new(),
            last: 0,
            bytes: 0,
            expires,
            appended,
        });
        log.entries.push_back(append.bytes.into());
        log.bytes += size;
        (log.last, log.expires, log.appended) = (append.position, expires, appended);
        self.bytes.add(&owner, size);
        while (log.entries.len() > append.max_entries || log.bytes > append.max_bytes)
            && let Some(size) = log.drop_first()
        {
            self.bytes.remove(&owner, size);
        }
        self.order.insert((owner.clone(), appended), name.clone());
        self.by_expiry.insert((expires, name.clone()));
        loop {
            let beyond_count = !self.count.fits_share(&owner, 0);
            let is_beyond = beyond_count || !self.bytes.fits_share(&owner, 0);
            if !is_beyond || !self.evict(&owner, beyond_count, &name) {
                break;
            }
        }
        loop {
            let beyond_bytes = !self.bytes.fits(0);
            let used = match (beyond_bytes, self.count.fits(0)) {
                (true, _) => &self.bytes,
                (false, false) => &self.count,
                (false, true) => break,
            };
            let Some(largest) = used.largest().cloned() else { break };
            if !self.evict(&largest, !beyond_bytes, &name) {
                break;
            }
        }
        Appended::Stored
    }

    /// Removes the log of an owner that nothing was appended to for longest, other than `kept`; of its only log, the oldest
    /// entry, if that helps. `false` if there is nothing to remove.
    fn evict(&mut self, owner: &Owner, beyond_count: bool, kept: &Arc<str>) -> bool {
        let mut own = self.order.range((owner.clone(), 0)..=(owner.clone(), u64::MAX)).map(|(_, name)| name);
        let Some(first) = own.next() else { return false };
        let second = own.next();
        if second.is_none()
            && !beyond_count
            && let Some(size) = self.logs.get_mut(first).and_then(MemoryLog::drop_first)
        {
            self.bytes.remove(owner, size);
            return true;
        }
        let Some(oldest) = [Some(first), second].into_iter().flatten().find(|name| *name != kept) else {
            return false;
        };
        let oldest = oldest.clone();
        self.remove(&oldest);
        true
    }

    /// Reads entries; see `read_after` of `Shared`.
    pub(crate) fn read_after(
        &mut self,
        now: Instant,
        name: &str,
        position: u64,
        limit: usize,
    ) -> Option<LogPage> {
        self.expire(now);
        let log = self.logs.get(name)?;
        let first = log.last + 1 - log.entries.len() as u64;
        let read = usize::try_from(position.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
        let entries = (first..).zip(&log.entries).skip(read).take(limit);
        let entries = entries.map(|(position, bytes)| LogEntry { position, bytes: bytes.clone() }).collect();
        Some(LogPage { entries, first, last: log.last })
    }

    #[cfg(test)]
    fn size(&self) -> (usize, usize) {
        let logs = self.logs.len();
        assert_eq!([logs; 3], [self.order.len(), self.by_expiry.len(), self.count.total()]);
        (self.bytes.total(), logs)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_logs_of_one_owner_cost_no_other_owner_an_entry_and_nothing_is_counted_twice() {
        let table = Table::new("logs", 100, 40_000, 50);
        let (mut logs, now) = (MemoryLogs::new(&table), Instant::now());
        let mut append = |owner: &str, log: &str, position: u64, bytes: usize, seconds: u64| {
            let (bytes, expires_in) = (vec![0; bytes], Duration::from_secs(seconds));
            let append =
                Append { position, bytes: &bytes, owner, max_entries: 50, max_bytes: 30_000, expires_in };
            assert_eq!(logs.append(now, &table, log, &append), Appended::Stored);
            let (bytes, count) = logs.size();
            assert!(bytes <= 40_000 && count <= 100);
        };
        append("bob", "b", 1, 1000, 90);
        for position in 1..=60 {
            append("ada", "a", position, 1000, 60);
        }
        for log in 0..200 {
            append("eve", &log.to_string(), 1, 1000, 30);
        }
        let mut positions = |log: &str, after: Duration| {
            let page = logs.read_after(now + after, log, 0, 100);
            page.map(|page| page.entries.iter().map(|entry| entry.position).collect::<Vec<_>>())
        };
        assert_eq!(positions("b", Duration::ZERO), Some(vec![1]));
        let kept = positions("a", Duration::ZERO).expect("her own newest entries");
        assert!(kept.len() > 10 && kept.last() == Some(&60), "{kept:?}");
        assert_eq!(
            (positions("a", Duration::from_secs(60)), positions("b", Duration::from_secs(60))),
            (None, Some(vec![1]))
        );
        assert_eq!(logs.size(), (1000, 1));
        logs.expire(now + Duration::from_secs(90));
        assert_eq!(logs.size(), (0, 0));
    }
}
