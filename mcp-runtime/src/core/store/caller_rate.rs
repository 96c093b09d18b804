//! How often one caller may do something.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::shared::SharedCount;
use crate::core::{
    admission::{MAX_CALLERS, Owner, Rate, RateLimiter, RateReached},
    maybe_ready::MaybeReady,
};

/// A rate that each caller has; clones are the same.
#[derive(Clone)]
pub(crate) struct CallerRate(pub(super) Arc<CallerRateInner>);

pub(super) struct CallerRateInner {
    /// The knowledge of this process: the calls that it has granted, and the refusals of the store.
    pub(super) limiter: RateLimiter,
    /// Where replicas count it together.
    pub(super) shared: OnceLock<SharedCount>,
}

impl CallerRate {
    /// A rate that this process counts.
    pub(crate) fn new(rate: Rate) -> Self {
        Self(Arc::new(CallerRateInner {
            limiter: RateLimiter::new(rate, MAX_CALLERS),
            shared: OnceLock::new(),
        }))
    }

    /// Counts one time of a caller.
    pub(crate) fn take(&self, caller: &Owner) -> MaybeReady<Result<(), RateReached>> {
        if let Some(shared) = self.0.shared.get() {
            return self.take_shared(shared, caller);
        }
        MaybeReady::Ready(self.take_here(caller))
    }

    /// Counts one time of a caller where nothing can be waited for: this process decides, and tells the store.
    ///
    /// # Errors
    /// The caller has used up the rate, as far as this process knows.
    pub(crate) fn take_at_once(&self, caller: &Owner) -> Result<(), RateReached> {
        self.take_here(caller)?;
        self.count_at_store(caller);
        Ok(())
    }

    pub(super) fn take_here(&self, caller: &Owner) -> Result<(), RateReached> {
        self.0.limiter.take(caller).map_err(|wait| self.reached(wait))
    }

    pub(super) fn reached(&self, wait: Duration) -> RateReached {
        RateReached { rate: self.0.limiter.rate(), wait }
    }
}
