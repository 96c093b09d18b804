//! How many calls of one caller run at once, and what a caller is told that has reached this limit or a rate.

use std::{fmt, sync::Arc, time::Duration};

use super::{Owner, Permit, Quota, Rate, Shares, rate::count};
use crate::core::reason::Reason;

/// How many calls one caller may run at once.
#[derive(Debug)]
pub(crate) struct CallerConcurrency {
    calls: usize,
    shares: Arc<Shares>,
}

/// Why a caller has to wait; the text is for the model or user who called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    Rate(Rate, Duration),
    Concurrency(usize),
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
            Self::Rate(..) => Reason::RateLimited,
            Self::Concurrency(_) => Reason::Concurrency,
        }
    }

    /// The same for a client whose requests are limited, whatever they are for.
    pub(crate) fn of_requests(&self) -> String {
        match self {
            Self::Rate(rate, wait) => {
                let seconds = whole_seconds(*wait);
                let rate = rate.of_requests();
                format!("too many requests: a client may send at most {rate}\ntry again in {seconds} s")
            }
            Self::Concurrency(calls) => {
                format!("too many requests: a client may run at most {} at once", count(calls, "request"))
            }
        }
    }
}

/// The seconds to wait, for a header or a person: never zero.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(u64::from(wait.is_zero()))
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate, wait) => {
                write!(f, "may be called {rate}\ntry again in {} s", whole_seconds(*wait))
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
            assert_eq!(limit.acquire(&owner).unwrap_err(), LimitReached::Concurrency(2));
            drop(first);
            assert!(limit.acquire(&owner).is_ok());
        }
    }

    #[test]
    fn limits_are_told_in_words() {
        let told = |rate: &str| {
            LimitReached::Rate(Rate::parse(rate).unwrap(), Duration::from_millis(1500)).of_requests()
        };
        let expected = "too many requests: a client may send at most 3 requests in 1 hour\ntry again in 2 s";
        assert_eq!(told("3/1h"), expected);
        let expected =
            "too many requests: a client may send at most 1 request in 30 minutes\ntry again in 2 s";
        assert_eq!(told("1/30m"), expected);
        let running = [1, 2].map(|calls| LimitReached::Concurrency(calls).of_requests());
        assert_eq!(
            running,
            ["1 request", "2 requests"]
                .map(|calls| format!("too many requests: a client may run at most {calls} at once"))
        );
    }

    #[test]
    fn a_wait_is_told_in_seconds_and_never_as_none() {
        let seconds = [0, 1, 999, 1000, 1001].map(|ms| whole_seconds(Duration::from_millis(ms)));
        assert_eq!(seconds, [1, 1, 1, 1, 2]);
    }
}
