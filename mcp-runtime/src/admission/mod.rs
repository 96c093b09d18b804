//! Limits that clients share: budgets of requests, streams, calls and bytes, and shares of them, so that one client cannot
//! exhaust what all of them need.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::sync::Mutex;

/// A limited number of units, such as requests or bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
}

impl Budget {
    #[cfg(any(feature = "http", test))]
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    fn try_take(&self, units: usize) -> bool {
        let take = |used: usize| used.checked_add(units).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Acquires that number of units; `None` if fewer are left.
    pub(crate) fn try_acquire(self: &Arc<Self>, units: usize) -> Option<Permit> {
        self.try_take(units).then(|| Permit { budget: self.clone(), units })
    }

    /// A permit without units; [`Permit::grow`] adds them.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn empty_permit(self: &Arc<Self>) -> Permit {
        Permit { budget: self.clone(), units: 0 }
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Units of a budget, released on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<Budget>,
    units: usize,
}

#[cfg(any(feature = "http", test))]
impl Permit {
    /// Acquires more units; `false` without any effect if fewer are left.
    pub(crate) fn grow(&mut self, units: usize) -> bool {
        let acquired = self.budget.try_take(units);
        if acquired {
            self.units += units;
        }
        acquired
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.units, Ordering::Relaxed);
    }
}

/// A limited number of permits, of which one owner gets half at most, so that others are still admitted.
///
/// Owners are digests of authenticated callers; requests without a caller share all permits.
#[derive(Debug)]
pub(crate) struct Shares {
    limit: usize,
    usage: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    total: usize,
    by_owner: HashMap<Arc<str>, usize>,
}

impl Shares {
    /// `limit` permits for all owners together.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, usage: Mutex::default() })
    }

    /// A permit for that owner; `None` if all permits, or those of its share, are in use.
    pub(crate) fn try_acquire(self: &Arc<Self>, owner: Option<Arc<str>>) -> Option<SharePermit> {
        let mut usage = self.usage.lock();
        if usage.total >= self.limit {
            return None;
        }
        if let Some(owner) = &owner {
            let count = usage.by_owner.entry(owner.clone()).or_default();
            if *count >= self.limit.div_ceil(2) {
                return None;
            }
            *count += 1;
        }
        usage.total += 1;
        drop(usage);
        Some(SharePermit { shares: self.clone(), owner })
    }
}

/// A permit of an owner's share, released on drop.
#[derive(Debug)]
pub(crate) struct SharePermit {
    shares: Arc<Shares>,
    owner: Option<Arc<str>>,
}

impl Drop for SharePermit {
    fn drop(&mut self) {
        let mut usage = self.shares.usage.lock();
        usage.total -= 1;
        let Some(owner) = &self.owner else { return };
        if let Some(count) = usage.by_owner.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                usage.by_owner.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_releases_its_units() {
        let budget = Budget::new(10);
        let mut one = budget.try_acquire(4).unwrap();
        assert!(budget.try_acquire(7).is_none() && one.grow(6) && !one.grow(1));
        assert!(!budget.empty_permit().grow(usize::MAX), "no overflow");
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_owner_gets_half_of_the_permits_at_most() {
        let shares = Shares::new(3);
        let [ada, bob] = ["ada", "bob"].map(|name| Some(Arc::from(name)));
        let hers = [ada.clone(), ada.clone()].map(|owner| shares.try_acquire(owner).unwrap());
        assert!(shares.try_acquire(ada.clone()).is_none());
        let his = shares.try_acquire(bob).unwrap();
        assert!(shares.try_acquire(None).is_none(), "all are in use");
        drop(hers);
        assert!(shares.try_acquire(ada).is_some());
        drop(his);
        assert!(shares.usage.lock().by_owner.is_empty() && shares.usage.lock().total == 0);
    }
}
