//! What a server admits: budgets of requests, streams, calls and bytes, and shares of them, so that one client cannot
//! use up what all of them need. Everything that is bounded and shared between clients takes its permits here.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// So many units of something: places, or bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    fn take(&self, units: usize) -> bool {
        let take = |used: usize| used.checked_add(units).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// So many units; `None` if there are not as many left.
    pub(crate) fn try_acquire(self: &Arc<Self>, units: usize) -> Option<Permit> {
        self.take(units).then(|| Permit { budget: self.clone(), units })
    }

    /// No units yet; they are added with [`Permit::grow`].
    pub(crate) fn empty_permit(self: &Arc<Self>) -> Permit {
        Permit { budget: self.clone(), units: 0 }
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Units of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<Budget>,
    units: usize,
}

impl Permit {
    /// Takes so many more units; `false`, and nothing has changed, if there are not as many left.
    pub(crate) fn grow(&mut self, units: usize) -> bool {
        let taken = self.budget.take(units);
        if taken {
            self.units += units;
        }
        taken
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.units, Ordering::Relaxed);
    }
}

/// A budget of places of which one owner gets a share: so many of all, so many for each.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    limit: usize,
    share: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by_owner: HashMap<K, usize>,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    /// `limit` places for all owners together, `share` for each of them.
    pub(crate) fn new(limit: usize, share: usize) -> Arc<Self> {
        Arc::new(Self { limit, share, taken: Mutex::new(Taken { all: 0, by_owner: HashMap::new() }) })
    }

    fn lock(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for that owner; `None` if all are taken, or its share is used up. Without an owner only the whole
    /// counts.
    pub(crate) fn try_acquire(self: &Arc<Self>, owner: Option<K>) -> Option<SharePermit<K>> {
        let mut taken = self.lock();
        if taken.all >= self.limit {
            return None;
        }
        if let Some(owner) = &owner {
            let own = taken.by_owner.entry(owner.clone()).or_default();
            if *own >= self.share {
                return None;
            }
            *own += 1;
        }
        taken.all += 1;
        drop(taken);
        Some(SharePermit { shares: self.clone(), owner })
    }
}

/// A place in an owner's share, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct SharePermit<K: Eq + Hash + Clone> {
    shares: Arc<Shares<K>>,
    owner: Option<K>,
}

impl<K: Eq + Hash + Clone> Drop for SharePermit<K> {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        taken.all -= 1;
        let Some(owner) = &self.owner else { return };
        if let Some(own) = taken.by_owner.get_mut(owner) {
            *own -= 1;
            if *own == 0 {
                taken.by_owner.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_back_with_their_permits() {
        let budget = Budget::new(10);
        let mut one = budget.try_acquire(4).unwrap();
        assert!(budget.try_acquire(7).is_none() && one.grow(6) && !one.grow(1));
        assert!(!budget.empty_permit().grow(usize::MAX), "no overflow");
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_owner_gets_no_more_than_its_share() {
        let shares = Shares::new(3, 2);
        let ada = [shares.try_acquire(Some("ada")).unwrap(), shares.try_acquire(Some("ada")).unwrap()];
        assert!(shares.try_acquire(Some("ada")).is_none());
        let bob = shares.try_acquire(Some("bob")).unwrap();
        assert!(shares.try_acquire(None).is_none(), "all are taken");
        drop(ada);
        assert!(shares.try_acquire(Some("ada")).is_some());
        drop(bob);
        assert!(shares.lock().by_owner.is_empty() && shares.lock().all == 0);
    }
}
