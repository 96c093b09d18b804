//! A map that keeps what was used last, within bounds: once half of it is recent, the other half is dropped. An entry in use
//! stays however many others are added, and no order of uses has to be kept.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

/// A bounded map.
pub(crate) struct RecentMap<K, V> {
    /// Added or used since [`trim`](Self::trim) has dropped entries the last time.
    recent: HashMap<K, V>,
    older: HashMap<K, V>,
    /// Bytes of the recent entries.
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
    size: fn(&K, &V) -> usize,
}

impl<K: Eq + Hash, V> RecentMap<K, V> {
    /// A map of this many entries.
    pub(crate) fn new(max_entries: usize) -> Self {
        Self::with_bytes(max_entries, usize::MAX, |_, _| 0)
    }

    /// A map of this many entries and bytes; `size` has the bytes of one.
    pub(crate) fn with_bytes(max_entries: usize, max_bytes: usize, size: fn(&K, &V) -> usize) -> Self {
        Self { recent: HashMap::new(), older: HashMap::new(), bytes: 0, max_entries, max_bytes, size }
    }

    /// The value of a key, which is recent now.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.older.is_empty()
            && let Some((key, value)) = self.older.remove_entry(key)
        {
            self.insert(key, value);
        }
        self.recent.get(key)
    }

    /// Adds a value, or replaces it; call [`trim`](Self::trim) before.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.older.remove(&key);
        self.bytes += (self.size)(&key, &value);
        if let Some((key, replaced)) = self.recent.remove_entry(&key) {
            self.bytes -= (self.size)(&key, &replaced);
        }
        self.recent.insert(key, value);
    }

    /// Removes the entries for which `keeps` is false.
    #[cfg(feature = "client")]
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&K) -> bool) {
        self.older.retain(|key, _| keeps(key));
        for (key, value) in self.recent.extract_if(|key, _| !keeps(key)) {
            self.bytes -= (self.size)(&key, &value);
        }
    }

    /// Makes room: if half of the map is recent, drops the other half, and returns it. Entries that are added together all
    /// stay if it is called before the first of them, and may exceed the bounds together.
    pub(crate) fn trim(&mut self) -> HashMap<K, V> {
        if self.recent.len() < self.max_entries / 2 && self.bytes <= self.max_bytes / 2 {
            return HashMap::new();
        }
        self.bytes = 0;
        std::mem::replace(&mut self.older, std::mem::take(&mut self.recent))
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.recent.iter().chain(&self.older)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_in_use_stays_and_the_oldest_others_are_dropped() {
        let mut map = RecentMap::new(10);
        for n in 0..100 {
            drop(map.trim());
            map.insert(n, n);
            assert_eq!(map.get(&0), Some(&0), "after {n} others");
            assert!(map.iter().count() <= 10, "{n}");
        }
        assert!(map.get(&99).is_some() && map.get(&98).is_some(), "only the oldest are dropped");
        assert_eq!(map.get(&50), None);
    }

    #[test]
    fn bytes_are_bounded_and_what_is_dropped_is_returned() {
        let mut map = RecentMap::with_bytes(1000, 100, |_, text: &String| text.len());
        let mut dropped = Vec::new();
        for n in 0..10 {
            dropped.extend(map.trim());
            map.insert(n, "x".repeat(20));
            map.insert(n, "y".repeat(20));
            assert!(map.iter().map(|(_, text)| text.len()).sum::<usize>() <= 120, "{n}");
        }
        assert_eq!(dropped.len() + map.iter().count(), 10, "replacing a value drops no entry");
        assert!(dropped.iter().all(|(key, _)| map.get(key).is_none()));
    }
}
