//! Whether a rate is used up, for what counts later or elsewhere.

use std::time::Duration;

use super::{Owner, RateLimiter};

impl RateLimiter {
    /// Checks whether an owner may do it once more, and counts nothing.
    ///
    /// # Errors
    /// The owner has used up its rate, and has to wait for so long.
    pub(crate) fn check(&self, owner: &Owner) -> Result<(), Duration> {
        let now = self.now();
        self.in_bucket(owner, |bucket, owner| match bucket.iter().find(|slot| slot.owner == owner) {
            Some(slot) => self.after_next(*slot, now).map(drop),
            None => Ok(()),
        })
    }
}
