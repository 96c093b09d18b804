//! What a server admits: budgets of requests, streams, calls and bytes, and shares of them, so that one client cannot
//! use up what all of them need. Everything that is bounded and shared between clients takes its permits here.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::sync::Mutex;

/// So many units of something: places, or bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
}

impl Budget {
    #[cfg(feature = "http")]
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

    #[cfg(feature = "http")]
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

#[cfg(feature = "http")]
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

/// A budget of places of which one owner gets half at most, so that whoever comes next finds one.
///
/// Owners are callers, by a text that tells one from another; those who are not told apart share the whole.
#[derive(Debug)]
pub(crate) struct Shares {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_owner: HashMap<Arc<str>, usize>,
}

impl Shares {
    /// So many places for all owners together.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: Mutex::default() })
    }

    /// A place for that owner; `None` if all are taken, or its share is used up.
    pub(crate) fn try_acquire(self: &Arc<Self>, owner: Option<Arc<str>>) -> Option<SharePermit> {
        let mut taken = self.taken.lock();
        if taken.all >= self.limit {
            return None;
        }
        if let Some(owner) = &owner {
            let own = taken.by_owner.entry(owner.clone()).or_default();
            if *own >= self.limit.div_ceil(2) {
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
pub(crate) struct SharePermit {
    shares: Arc<Shares>,
    owner: Option<Arc<str>>,
}

impl Drop for SharePermit {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
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
    fn one_owner_gets_half_of_the_places_at_most() {
        let shares = Shares::new(3);
        let [ada, bob] = ["ada", "bob"].map(|name| Some(Arc::from(name)));
        let hers = [ada.clone(), ada.clone()].map(|owner| shares.try_acquire(owner).unwrap());
        assert!(shares.try_acquire(ada.clone()).is_none());
        let his = shares.try_acquire(bob).unwrap();
        assert!(shares.try_acquire(None).is_none(), "all are taken");
        drop(hers);
        assert!(shares.try_acquire(ada).is_some());
        drop(his);
        assert!(shares.taken.lock().by_owner.is_empty() && shares.taken.lock().all == 0);
    }
}
