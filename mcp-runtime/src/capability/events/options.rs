//! Limits of events: what is kept of them.

use std::time::Duration;

use crate::core::config::{LONGEST, Limits};

/// Limits of events: `.limits(|limits| limits.events(|events| ..))`.
///
/// The last events of each type are kept in memory, so that a client that was away for a moment gets what it has missed.
/// Events that are dropped by then are reported to the client as a gap.
#[derive(Debug, Clone)]
#[must_use]
pub struct EventLimits {
    /// Events of one type.
    pub(crate) max_kept: usize,
    /// Bytes of the events of one type.
    pub(crate) max_kept_bytes: usize,
    pub(super) keep_for: Duration,
    /// Bytes of one payload.
    pub(crate) max_payload: usize,
    #[cfg(feature = "events-webhook")]
    pub(super) webhook: super::webhook::WebhookLimits,
}

impl EventLimits {
    pub(crate) fn new() -> Self {
        Self {
            max_kept: 1000,
            max_kept_bytes: 4 << 20,
            keep_for: Duration::from_secs(10 * 60),
            max_payload: 256 << 10,
            #[cfg(feature = "events-webhook")]
            webhook: Default::default(),
        }
    }

    /// Sets how many events of one type are kept; 1000 by default. The oldest go first.
    pub fn max_kept(mut self, events: usize) -> Self {
        self.max_kept = events.max(1);
        self
    }

    /// Sets how long events are kept; 10 minutes by default, a year at most.
    pub fn keep_for(mut self, time: Duration) -> Self {
        self.keep_for = time.min(LONGEST);
        self
    }

    /// Sets how many bytes of JSON one payload may have; 256 KiB by default. A larger one is not emitted.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }
}

impl Limits {
    /// Sets limits of events: see [`EventLimits`].
    pub fn events(mut self, set: impl FnOnce(EventLimits) -> EventLimits) -> Self {
        let limits = self.of_capabilities.get::<EventLimits>().cloned().unwrap_or_else(EventLimits::new);
        self.of_capabilities.insert(set(limits));
        self
    }
}
