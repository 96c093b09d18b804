//! Units of a quota that are held while something runs, waits or is open.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{Full, Owner, Quota};
use crate::core::sync::Mutex;

/// Units, such as requests or bytes, of which all owners together hold a limited number, and each owner a share at most.
pub(crate) struct Shares {
    quota: Quota,
    used: AtomicUsize,
    /// Only units that are charged to an owner.
    by_owner: Mutex<HashMap<Owner, usize>>,
    /// How often units have been taken.
    #[cfg(test)]
    taken: AtomicUsize,
}

impl Shares {
    pub(crate) fn new(quota: Quota) -> Arc<Self> {
        Arc::new(Self {
            quota,
            used: AtomicUsize::new(0),
            by_owner: Mutex::default(),
            #[cfg(test)]
            taken: AtomicUsize::new(0),
        })
    }

    fn try_take(&self, units: usize, limit: usize) -> bool {
        #[cfg(test)]
        self.taken.fetch_add(1, Ordering::Relaxed);
        let take = |used: usize| used.checked_add(units).filter(|used| *used <= limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn release(&self, owner: Option<&Owner>, units: usize) {
        self.used.fetch_sub(units, Ordering::Relaxed);
        let Some(owner) = owner else { return };
        let mut by_owner = self.by_owner.lock();
        if let Some(used) = by_owner.get_mut(owner) {
            *used -= units;
            if *used == 0 {
                by_owner.remove(owner);
            }
        }
    }

    /// Units of that owner; `None` if fewer are left, in total or of its share.
    pub(crate) fn try_acquire(self: &Arc<Self>, owner: &Owner, units: usize) -> Option<Permit> {
        let mut permit = self.empty_permit(owner);
        permit.grow(units).then_some(permit)
    }

    /// Units without an owner, for work that nearly always ends without waiting; `None` if fewer are left. Work that waits
    /// after all is [charged](Permit::charge).
    pub(crate) fn try_acquire_briefly(self: &Arc<Self>, units: usize) -> Option<Permit> {
        self.try_take(units, self.quota.limit).then(|| Permit { shares: self.clone(), owner: None, units })
    }

    /// Units of that owner, though they may exceed what is left, see [`Permit::grow_last`]; `None` if its share is used.
    pub(crate) fn acquire_last(self: &Arc<Self>, owner: &Owner, units: usize) -> Option<Permit> {
        let mut permit = self.empty_permit(owner);
        permit.grow_last(units).then_some(permit)
    }

    /// A permit without units; [`Permit::grow`] adds them.
    pub(crate) fn empty_permit(self: &Arc<Self>, owner: &Owner) -> Permit {
        Permit { shares: self.clone(), owner: Some(owner.clone()), units: 0 }
    }

    /// Whether something of that owner may begin that may have to be [charged](Permit::charge).
    pub(crate) fn has_room(&self, owner: impl FnOnce() -> Owner) -> bool {
        // no owner has more than all of them together
        if self.used.load(Ordering::Relaxed) < self.quota.share {
            return true;
        }
        let owner = owner();
        self.by_owner.lock().get(&owner).is_none_or(|used| {
            *used < self.quota.share_of(&owner)
                // the requested amount may be in use already
                && self.used.load(Ordering::Relaxed) <= self.quota.limit_of_holder(&owner)
        })
    }

    /// The owner that uses most.
    pub(crate) fn largest(&self) -> Option<Owner> {
        self.by_owner.lock().iter().max_by_key(|(_, used)| **used).map(|(owner, _)| owner.clone())
    }

    /// How often units have been taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Units that are released on drop.
pub(crate) struct Permit {
    shares: Arc<Shares>,
    owner: Option<Owner>,
    units: usize,
}

impl Permit {
    /// Acquires more units; `false` without any effect if fewer are left.
    pub(crate) fn grow(&mut self, units: usize) -> bool {
        self.try_grow(units).is_ok()
    }

    /// Acquires more units.
    ///
    /// # Errors
    /// Fewer are left; nothing has changed then.
    pub(crate) fn try_grow(&mut self, units: usize) -> Result<(), Full> {
        let Self { shares, owner, .. } = self;
        if let Some(owner) = owner {
            let mut by_owner = shares.by_owner.lock();
            let used = by_owner.get(owner).copied().unwrap_or_default();
            let fits = used.checked_add(units).is_some_and(|used| used <= shares.quota.share_of(owner));
            if !fits {
                return Err(Full::Share);
            }
            let quota = shares.quota;
            let limit = if used == 0 { quota.limit } else { quota.limit_of_holder(owner) };
            if !shares.try_take(units, limit) {
                return Err(Full::Table);
            }
            match by_owner.get_mut(owner) {
                Some(used) => *used += units,
                None => drop(by_owner.insert(owner.clone(), units)),
            }
        } else if !shares.try_take(units, shares.quota.limit) {
            return Err(Full::Table);
        }
        self.units += units;
        Ok(())
    }

    /// Acquires more units, though they may exceed what is left, as long as less than the owner's share, and less than the
    /// limit, is used before. Something larger than a share is possible that way, one at a time.
    pub(crate) fn grow_last(&mut self, units: usize) -> bool {
        let Self { shares, owner, .. } = self;
        if units == 0 {
            return true;
        }
        let mut by_owner = shares.by_owner.lock();
        let holder = owner.as_ref().filter(|owner| by_owner.contains_key(*owner));
        let limit = holder.map_or(shares.quota.limit, |owner| shares.quota.limit_of_holder(owner));
        if shares.used.load(Ordering::Relaxed) >= limit {
            return false;
        }
        if let Some(owner) = owner {
            match by_owner.get_mut(owner) {
                Some(used) if *used >= shares.quota.share_of(owner) => return false,
                Some(used) => *used += units,
                None => drop(by_owner.insert(owner.clone(), units)),
            }
        }
        shares.used.fetch_add(units, Ordering::Relaxed);
        self.units += units;
        true
    }

    /// Adds the units of another permit of the same shares, if its owner is the same; returns how many these are.
    #[cfg(feature = "http")]
    pub(crate) fn merge(&mut self, mut other: Self) -> usize {
        let units = if self.owner == other.owner { std::mem::take(&mut other.units) } else { 0 };
        self.units += units;
        units
    }

    /// Moves some of the units, as far as there are as many, into a permit of their own.
    pub(crate) fn split(&mut self, units: usize) -> Self {
        let units = units.min(self.units);
        self.units -= units;
        Self { shares: self.shares.clone(), owner: self.owner.clone(), units }
    }

    /// Releases some of the units.
    pub(crate) fn shrink(&mut self, units: usize) {
        let units = units.min(self.units);
        self.units -= units;
        self.shares.release(self.owner.as_ref(), units);
    }

    /// Whether the units are charged to an owner.
    pub(crate) fn is_charged(&self) -> bool {
        self.owner.is_some()
    }

    /// Charges units that were acquired briefly to an owner, even beyond its share; no effect if they are charged already.
    pub(crate) fn charge(&mut self, owner: &Owner) {
        self.charge_within(owner, usize::MAX);
    }

    /// Charges units that were acquired briefly to an owner; `false` if they exceed its share.
    pub(crate) fn try_charge(&mut self, owner: &Owner) -> bool {
        self.charge_within(owner, self.shares.quota.share_of(owner))
    }

    fn charge_within(&mut self, owner: &Owner, share: usize) -> bool {
        if self.owner.is_some() {
            return true;
        }
        let mut by_owner = self.shares.by_owner.lock();
        let held = by_owner.get(owner).copied().unwrap_or_default();
        let used = held.saturating_add(self.units);
        let is_full = || self.shares.used.load(Ordering::Relaxed) > self.shares.quota.limit_of_holder(owner);
        if used > share || (share < usize::MAX && held > 0 && is_full()) {
            return false;
        }
        by_owner.insert(owner.clone(), used);
        drop(by_owner);
        self.owner = Some(owner.clone());
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shares.release(self.owner.as_ref(), self.units);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::principal(name.into())
    }

    #[test]
    fn a_dropped_permit_releases_its_units() {
        let shares = Shares::new(Quota::undivided(10));
        let mut one = shares.try_acquire(&owner("ada"), 4).unwrap();
        assert!(shares.try_acquire(&owner("bob"), 7).is_none() && one.grow(6) && !one.grow(1));
        assert!(!shares.empty_permit(&owner("ada")).grow(usize::MAX), "no overflow");
        drop(one);
        assert!(shares.used() == 0 && shares.by_owner.lock().is_empty());
    }

    #[test]
    fn one_owner_gets_its_share_at_most() {
        let shares = Shares::new(Quota::half(3));
        let (ada, bob) = (owner("ada"), owner("bob"));
        let hers = [1, 1].map(|units| shares.try_acquire(&ada, units).unwrap());
        assert!(shares.try_acquire(&ada, 1).is_none() && !shares.has_room(|| ada.clone()));
        let his = shares.try_acquire(&bob, 1).unwrap();
        assert!(shares.try_acquire(&owner("eve"), 1).is_none(), "all are in use");
        drop(hers);
        assert!(shares.try_acquire(&ada, 1).is_some());
        drop(his);
        assert!(shares.by_owner.lock().is_empty() && shares.used() == 0);
    }

    #[test]
    fn units_that_are_held_briefly_count_in_total_and_are_charged_once_they_wait() {
        let shares = Shares::new(Quota::half(4));
        let ada = owner("ada");
        let mut brief = [1, 1, 1].map(|units| shares.try_acquire_briefly(units).unwrap());
        assert!(shares.has_room(|| ada.clone()), "nothing of hers waits");
        brief.iter_mut().take(2).for_each(|permit| permit.charge(&ada));
        assert!(!shares.has_room(|| ada.clone()) && shares.has_room(|| owner("bob")));
        assert!(!brief[2].try_charge(&ada) && brief[2].try_charge(&owner("bob")));
        assert!(shares.try_acquire_briefly(1).is_some() && shares.try_acquire_briefly(2).is_none());
        drop(brief);
        assert!(shares.by_owner.lock().is_empty() && shares.used() == 0);
    }

    #[test]
    fn owners_that_hold_their_shares_leave_room_for_one_that_holds_nothing() {
        let shares = Shares::new(Quota::half(16));
        let take = |name: &str, most: usize| -> Vec<Permit> {
            (0..most).map_while(|_| shares.try_acquire(&owner(name), 1)).collect()
        };
        let (hers, his) = (take("ada", 16), take("bob", 16));
        assert_eq!((hers.len(), his.len()), (8, 6), "an eighth is left");
        let mut brief = shares.try_acquire_briefly(1).unwrap();
        assert!(!shares.has_room(|| owner("bob")) && shares.has_room(|| owner("eve")));
        assert!(!brief.try_charge(&owner("bob")) && brief.try_charge(&owner("eve")));
        assert_eq!(take("eve", 2).len(), 0, "she holds one");
        let (first, second) = (take("fay", 2), take("gus", 2));
        assert_eq!((first.len(), second.len()), (1, 0), "all are in use");
        drop((hers, his, brief, first));
        assert!(shares.by_owner.lock().is_empty() && shares.used() == 0);
        // the only owner that there is may use all
        assert_eq!(
            (0..20).map_while(|_| shares.try_acquire(&Owner::local(), 1)).collect::<Vec<_>>().len(),
            16
        );
    }

    #[cfg(feature = "http")]
    #[test]
    fn what_is_larger_than_a_share_is_acquired_one_at_a_time() {
        let shares = Shares::new(Quota::half(10));
        let (ada, bob, eve) = (owner("ada"), owner("bob"), owner("eve"));
        let mut hers = shares.acquire_last(&ada, 7).unwrap();
        assert!(shares.acquire_last(&ada, 1).is_none() && !hers.grow_last(1));
        let his = shares.acquire_last(&bob, 7).unwrap();
        assert!(shares.acquire_last(&eve, 1).is_none(), "all are in use");
        let part = hers.split(3);
        drop(hers);
        assert_eq!(shares.used(), 10);
        drop((part, his));
        assert!(shares.by_owner.lock().is_empty() && shares.used() == 0);
    }
}
