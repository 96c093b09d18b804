//! Which changes of a running task the store has: they are counted, written together, and confirmed.

use std::{future::Future, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// How long a function waits until the store has what it must not do twice.
const SAVE: Duration = Duration::from_secs(2);

/// The changes of a record. What is merged is written next; the store confirms it, or has no room for it.
pub(super) struct Saves {
    /// How many there were.
    changes: u64,
    /// How many of them were written, or had no room in the store.
    settled: u64,
    /// How many of them are in what is written now, and its expiry.
    merged: (u64, Instant),
    /// The expiry in the store.
    stored_expiry: Instant,
    /// Whether the store does not have a request yet.
    has_unsaved_request: bool,
    /// How many of them the store has.
    saved: watch::Sender<u64>,
}

impl Saves {
    pub(super) fn new(expires: Instant) -> Self {
        Self {
            changes: 0,
            settled: 0,
            merged: (0, expires),
            stored_expiry: expires,
            has_unsaved_request: false,
            saved: watch::Sender::new(0),
        }
    }

    pub(super) fn add_change(&mut self) {
        self.changes += 1;
    }

    /// A request to the client is among the changes: unless it is saved, its client never learns of it.
    pub(super) fn add_request(&mut self) {
        self.has_unsaved_request = true;
    }

    pub(super) fn has_unsaved_request(&self) -> bool {
        self.has_unsaved_request
    }

    /// Whether some change is to be written.
    pub(super) fn is_due(&self) -> bool {
        self.changes != self.settled
    }

    /// Whether the store has every change.
    pub(super) fn is_complete(&self) -> bool {
        *self.saved.borrow() == self.changes
    }

    /// Every change is in what is written now, with this expiry.
    pub(super) fn merge(&mut self, expires: Instant) {
        self.merged = (self.changes, expires);
    }

    /// The store has what was merged last.
    pub(super) fn confirm(&mut self) {
        (self.settled, self.stored_expiry) = self.merged;
        self.has_unsaved_request &= self.is_due();
        self.saved.send_replace(self.settled);
    }

    /// The store has no room for what was merged last, which is not written again without another change.
    pub(super) fn give_up(&mut self) {
        self.settled = self.merged.0;
    }

    /// Whether the expiry in the store lags by a quarter of the time to live.
    pub(super) fn expiry_lags(&self, expires: Instant, ttl: Duration) -> bool {
        expires.duration_since(self.stored_expiry) > ttl / 4
    }

    /// Waits until the store has everything that has changed so far; whether it has in time.
    pub(super) fn wait(&self) -> impl Future<Output = bool> + Send + use<> {
        let (mut saved, changes) = (self.saved.subscribe(), self.changes);
        async move {
            let saved = timeout(SAVE, saved.wait_for(|saved| *saved >= changes)).await;
            saved.is_ok_and(|saved| saved.is_ok())
        }
    }
}
