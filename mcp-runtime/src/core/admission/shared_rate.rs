//! What a store that replicas share has decided about a rate, remembered by the process.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Owner, RateLimiter,
    rate::{Slot, find_slot},
};

impl RateLimiter {
    /// Counts one time of an owner that was granted elsewhere, at that moment.
    pub(crate) fn count(&self, owner: &Owner, at: Instant) {
        let (now, at) = (self.now(), self.since_start(at));
        self.in_bucket(owner, |bucket, owner| {
            let slot = find_slot(bucket, owner);
            let restored = (slot.restored.max(at) + self.interval).min(now + self.window);
            *slot = Slot { owner, restored };
        });
    }

    /// Refuses an owner for so long, as was decided elsewhere.
    pub(crate) fn refuse(&self, owner: &Owner, wait: Duration) {
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX).min(self.window);
        let refused = self.now() + wait + self.window - self.interval;
        self.in_bucket(owner, |bucket, owner| {
            let slot = find_slot(bucket, owner);
            *slot = Slot { owner, restored: slot.restored.max(refused) };
        });
    }
}
