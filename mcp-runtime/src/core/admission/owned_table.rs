//! A bounded table of what owners leave until it expires. It evicts nothing: an owner whose share is full is refused,
//! and the others are not.

use std::{
    borrow::Borrow,
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

use super::{Owner, Quota, Usage};

/// Entries by key, bounded in their number and in bytes; `T` is a time.
pub(crate) struct OwnedTable<K, V, T> {
    entries: HashMap<K, OwnedEntry<V, T>>,
    by_expiry: BTreeSet<(T, K)>,
    count: Usage,
    bytes: Usage,
}

/// An entry.
pub(crate) struct OwnedEntry<V, T> {
    pub(crate) owner: Owner,
    pub(crate) bytes: usize,
    /// From then on it is removed.
    pub(crate) expires: T,
    pub(crate) value: V,
}

/// Why a table does not take an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The owner's share is full.
    Share,
    /// The whole table is.
    Table,
}

impl<K: Clone + Eq + Hash + Ord, V, T: Copy + Ord> OwnedTable<K, V, T> {
    pub(crate) fn new(entries: Quota, bytes: Quota) -> Self {
        let (count, bytes) = (Usage::new(entries), Usage::new(bytes));
        Self { entries: HashMap::new(), by_expiry: BTreeSet::new(), count, bytes }
    }

    /// Removes what has expired.
    pub(crate) fn expire(&mut self, now: T) {
        while self.by_expiry.first().is_some_and(|(expires, _)| *expires <= now) {
            self.pop_first();
        }
    }

    /// Removes the entry that expires first.
    pub(crate) fn pop_first(&mut self) -> Option<V> {
        let (_, key) = self.by_expiry.first()?;
        let key = key.clone();
        self.remove(&key)
    }

    /// Adds an entry, or replaces the one of that key.
    ///
    /// # Errors
    /// It does not fit; nothing has changed then.
    pub(crate) fn put(&mut self, key: K, entry: OwnedEntry<V, T>) -> Result<(), Full> {
        let old = self.entries.get(&key).map(|old| (old.owner.clone(), old.bytes));
        if let Some((owner, bytes)) = &old {
            self.count.remove(owner, 1);
            self.bytes.remove(owner, *bytes);
        }
        let (count, bytes) = (&self.count, &self.bytes);
        let refused = if !count.fits_share(&entry.owner, 1) || !bytes.fits_share(&entry.owner, entry.bytes) {
            Some(Full::Share)
        } else if !count.fits(1) || !bytes.fits(entry.bytes) {
            Some(Full::Table)
        } else {
            None
        };
        if let Some(full) = refused {
            if let Some((owner, bytes)) = &old {
                self.count.add(owner, 1);
                self.bytes.add(owner, *bytes);
            }
            return Err(full);
        }
        self.count.add(&entry.owner, 1);
        self.bytes.add(&entry.owner, entry.bytes);
        let expires = entry.expires;
        if let Some(old) = self.entries.insert(key.clone(), entry) {
            self.by_expiry.remove(&(old.expires, key.clone()));
        }
        self.by_expiry.insert((expires, key));
        Ok(())
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Changes an entry and when it expires; `None` if there is none.
    pub(crate) fn update(&mut self, key: &K, change: impl FnOnce(&mut V, &mut T)) -> Option<()> {
        let entry = self.entries.get_mut(key)?;
        let before = entry.expires;
        change(&mut entry.value, &mut entry.expires);
        if entry.expires != before {
            self.by_expiry.remove(&(before, key.clone()));
            self.by_expiry.insert((entry.expires, key.clone()));
        }
        Some(())
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let (key, entry) = self.entries.remove_entry(key)?;
        self.count.remove(&entry.owner, 1);
        self.bytes.remove(&entry.owner, entry.bytes);
        self.by_expiry.remove(&(entry.expires, key));
        Some(entry.value)
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        assert_eq!((self.entries.len(), self.entries.len()), (self.by_expiry.len(), self.count.total()));
        (self.entries.len(), self.bytes.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(owner: &str, bytes: usize, expires: u64) -> OwnedEntry<(), u64> {
        OwnedEntry { owner: Owner::principal(owner.into()), bytes, expires, value: () }
    }

    #[test]
    fn an_owner_whose_share_is_full_is_refused_and_others_are_not() {
        let mut table = OwnedTable::new(Quota::half(4), Quota::half(100));
        table.put("a1", entry("ada", 10, 100)).unwrap();
        table.put("a2", entry("ada", 10, 200)).unwrap();
        assert_eq!(table.put("a3", entry("ada", 10, 300)), Err(Full::Share));
        table.put("a2", entry("ada", 40, 200)).expect("it is there already");
        assert_eq!(table.put("a2", entry("ada", 41, 200)), Err(Full::Share), "bytes have shares too");
        table.put("b1", entry("bob", 10, 300)).unwrap();
        table.put("b2", entry("bob", 10, 300)).unwrap();
        assert_eq!(table.put("e1", entry("eve", 10, 300)), Err(Full::Table));
        table.expire(100);
        assert!(table.get("a1").is_none() && table.size() == (3, 60));
        table.put("e1", entry("eve", 10, 300)).unwrap();
        table.update(&"e1", |(), expires| *expires = 150).unwrap();
        table.expire(150);
        assert!(table.get("e1").is_none());
        for key in ["a2", "b1", "b2"] {
            assert!(table.remove(key).is_some());
        }
        assert_eq!(table.size(), (0, 0));
    }
}
