//! A limit, the share of it that one owner may use, and how much each owner uses.

use std::collections::HashMap;

use super::Owner;

/// How much of what clients share one of them may use, in percent.
pub(crate) const HALF: u8 = 50;

/// A limit, and how much of it one owner may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) limit: usize,
    /// The maximum for any owner.
    pub(super) share: usize,
    /// The maximum for an owner that is alone.
    alone: usize,
}

impl Quota {
    /// A limit of which one owner may use this percentage.
    pub(crate) fn new(limit: usize, percent: u8) -> Self {
        let share = (limit as u128 * u128::from(percent.min(100))).div_ceil(100);
        Self { limit, share: usize::try_from(share).unwrap_or(limit), alone: limit }
    }

    /// A limit of which one owner may use half.
    pub(crate) fn half(limit: usize) -> Self {
        Self::new(limit, HALF)
    }

    /// A limit for each owner, without one in total.
    pub(crate) fn of_each_owner(share: usize) -> Self {
        Self { limit: usize::MAX, share, alone: share }
    }

    /// A limit in total, without one for each owner.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn undivided(limit: usize) -> Self {
        Self::new(limit, 100)
    }

    pub(crate) fn share_of(self, owner: &Owner) -> usize {
        if owner.is_alone() { self.alone } else { self.share }
    }

    /// Whether an owner that holds `held` units may take as many more, while `in_use` are in use in total.
    pub(super) fn has_room(self, owner: &Owner, in_use: usize, held: usize, units: usize) -> bool {
        let limit = if held == 0 { self.limit } else { self.limit_of_holder(owner) };
        let fits = |used: usize, most| used.checked_add(units).is_some_and(|used| used <= most);
        fits(in_use, limit) && fits(held, self.share_of(owner))
    }

    /// The owner's share as a quota of what the owner does, of which each part may use this percentage.
    pub(super) fn of_part(self, owner: &Owner, percent: u8) -> Self {
        Self::new(self.share_of(owner), percent)
    }

    /// How much may be in use when an owner takes more that holds some already: an eighth is kept for owners that hold
    /// none, so that a few with large shares do not shut out everybody else.
    pub(super) fn limit_of_holder(self, owner: &Owner) -> usize {
        if owner.is_alone() || self.share >= self.limit { self.limit } else { self.limit - self.limit / 8 }
    }
}

/// How much of a quota each owner uses.
pub(crate) struct Usage {
    quota: Quota,
    total: usize,
    by_owner: HashMap<Owner, usize>,
}

impl Usage {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, total: 0, by_owner: HashMap::new() }
    }

    fn of(&self, owner: &Owner) -> usize {
        self.by_owner.get(owner).copied().unwrap_or_default()
    }

    /// Whether this many more units fit into the owner's share.
    pub(crate) fn fits_share(&self, owner: &Owner, units: usize) -> bool {
        self.of(owner).saturating_add(units) <= self.quota.share_of(owner)
    }

    /// Whether this many more units fit into the limit.
    pub(crate) fn fits(&self, units: usize) -> bool {
        self.total.saturating_add(units) <= self.quota.limit
    }

    /// Adds units, whether or not they fit.
    pub(crate) fn add(&mut self, owner: &Owner, units: usize) {
        if units > 0 {
            self.total += units;
            match self.by_owner.get_mut(owner) {
                Some(used) => *used += units,
                None => drop(self.by_owner.insert(owner.clone(), units)),
            }
        }
    }

    /// Removes units that were added.
    pub(crate) fn remove(&mut self, owner: &Owner, units: usize) {
        self.total -= units;
        if let Some(used) = self.by_owner.get_mut(owner) {
            *used -= units;
            if *used == 0 {
                self.by_owner.remove(owner);
            }
        }
    }

    /// The owner that uses most.
    pub(crate) fn largest(&self) -> Option<&Owner> {
        self.by_owner.iter().max_by_key(|(_, used)| **used).map(|(owner, _)| owner)
    }

    #[cfg(test)]
    pub(crate) fn total(&self) -> usize {
        assert_eq!(self.by_owner.values().sum::<usize>(), self.total);
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage_of_the_limit_and_never_nothing() {
        let owner = Owner::anonymous();
        let share = |limit, percent| Quota::new(limit, percent).share_of(&owner);
        assert_eq!((share(10, 50), share(3, 50), share(1, 50), share(0, 50)), (5, 2, 1, 0));
        assert_eq!((share(usize::MAX, 100), share(100, 255), share(1000, 1)), (usize::MAX, 100, 10));
        assert_eq!(Quota::half(10).share_of(&Owner::local()), 10, "it shares it with no one");
    }

    #[test]
    fn what_is_removed_can_be_used_again() {
        let mut usage = Usage::new(Quota::half(10));
        let (one, other) = (Owner::anonymous(), Owner::principal("other".into()));
        usage.add(&one, 5);
        assert!(!usage.fits_share(&one, 1) && usage.fits_share(&other, 5) && usage.fits(5) && !usage.fits(6));
        usage.add(&other, 2);
        assert_eq!(usage.largest(), Some(&one));
        usage.remove(&one, 5);
        usage.remove(&other, 2);
        assert!(usage.total() == 0 && usage.by_owner.is_empty() && !usage.fits(usize::MAX));
    }
}
