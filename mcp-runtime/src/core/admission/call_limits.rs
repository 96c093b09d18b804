//! How many calls of one caller run at once, and what a caller is told that has reached this limit or a rate.

use std::{fmt, sync::Arc, time::Duration};

use super::{Owner, Permit, Quota, Rate, Shares};
use crate::core::reason::Reason;

/// How many calls one caller may run at once.
pub(crate) struct CallerConcurrency {
    calls: usize,
    shares: Arc<Shares>,
}

/// Why a caller has to wait; the text is for the model or user who called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    Rate(RateReached),
    Concurrency(usize),
}

/// A caller has used up a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateReached {
    pub(crate) rate: Rate,
    /// Until the next one is granted.
    pub(crate) wait: Duration,
}

impl CallerConcurrency {
    pub(crate) fn new(calls: usize) -> Self {
        let calls = calls.max(1);
        Self { calls, shares: Shares::new(Quota::of_each_owner(calls)) }
    }

    /// The permit of a call, which holds it while it runs.
    ///
    /// # Errors
    /// The caller runs as many as it may.
    pub(crate) fn acquire(&self, caller: &Owner) -> Result<Permit, LimitReached> {
        self.shares.try_acquire(caller, 1).ok_or(LimitReached::Concurrency(self.calls))
    }
}

impl LimitReached {
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Rate(_) => Reason::RateLimited,
            Self::Concurrency(_) => Reason::Concurrency,
        }
    }
}

impl RateReached {
    /// What a client is told whose requests are limited, whatever they are for.
    pub(crate) fn of_requests(&self) -> String {
        let rate = self.rate.of_requests();
        format!("too many requests: a client may send at most {rate}\ntry again in {} s", self.seconds())
    }

    /// The seconds to wait.
    pub(crate) fn seconds(&self) -> u64 {
        whole_seconds(self.wait)
    }
}

/// The seconds to wait, for a header or a person: never zero.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(u64::from(wait.is_zero()))
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(reached) => {
                write!(f, "may be called {}\ntry again in {} s", reached.rate, reached.seconds())
            }
            Self::Concurrency(1) => {
                write!(f, "is already running for this caller\ntry again when it has ended")
            }
            Self::Concurrency(calls) => {
                write!(f, "is already running {calls} times for this caller\ntry again when one has ended")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_its_calls_and_no_more_while_others_have_theirs() {
        let limit = CallerConcurrency::new(2);
        for owner in [Owner::principal("ada".into()), Owner::principal("bob".into()), Owner::local()] {
            let first = limit.acquire(&owner).unwrap();
            let _second = limit.acquire(&owner).unwrap();
            assert_eq!(limit.acquire(&owner).err(), Some(LimitReached::Concurrency(2)));
            drop(first);
            assert!(limit.acquire(&owner).is_ok());
        }
    }

    #[test]
    fn limits_are_told_in_words() {
        let told = |rate: &str| {
            RateReached { rate: Rate::parse(rate).unwrap(), wait: Duration::from_millis(1500) }.of_requests()
        };
        let expected = "too many requests: a client may send at most 3 requests in 1 hour\ntry again in 2 s";
        assert_eq!(told("3/1h"), expected);
        let expected =
            "too many requests: a client may send at most 1 request in 30 minutes\ntry again in 2 s";
        assert_eq!(told("1/30m"), expected);
    }

    #[test]
    fn a_wait_is_told_in_seconds_and_never_as_none() {
        let seconds = [0, 1, 999, 1000, 1001].map(|ms| whole_seconds(Duration::from_millis(ms)));
        assert_eq!(seconds, [1, 1, 1, 1, 2]);
    }
}
