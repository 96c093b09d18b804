//! Without the feature `shared` a server has no replicas: nothing is counted or kept together, and nothing is sent.

use std::{convert::Infallible, sync::Arc};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{CallerRate, Found, Received, SealedStore, StoreError, Table, Write, Written};
use crate::core::{
    admission::{Owner, RateReached},
    crypto::random_id,
    maybe_ready::MaybeReady,
};

/// There is none.
pub(super) enum Sealing {}

impl Sealing {
    pub(super) async fn find(&self, _: &Table, _: &str) -> Result<Found, StoreError> {
        match *self {}
    }

    pub(super) async fn put(&self, _: &Table, _: &str, _: Write<'_>) -> Result<Written, StoreError> {
        match *self {}
    }

    pub(super) async fn remove(&self, _: &Table, _: &str) -> Result<(), StoreError> {
        match *self {}
    }
}

pub(super) type SharedCount = Infallible;

impl CallerRate {
    pub(super) fn take_shared(&self, shared: &SharedCount, _: &Owner) -> MaybeReady<Result<(), RateReached>> {
        match *shared {}
    }

    pub(super) fn count_at_store(&self, _: &Owner) {}
}

pub(super) struct Messages {
    process: Arc<str>,
    closed: CancellationToken,
}

impl Default for Messages {
    fn default() -> Self {
        Self { process: random_id().unwrap_or_default().into(), closed: CancellationToken::new() }
    }
}

impl SealedStore {
    pub(crate) fn share_rate(&self, _: &CallerRate, _: &str, _: &str) {}

    pub(super) fn log_other_version(&self, _: &Table) {}

    /// Without a store of replicas there is nothing to reach.
    #[cfg(feature = "tasks")]
    pub(crate) fn reached_for(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    pub(crate) fn process(&self) -> &Arc<str> {
        &self.0.messages.process
    }

    pub(crate) fn close_messages(&self) {
        self.0.messages.closed.cancel();
    }

    pub(crate) fn send(&self, _: &'static str, _: &impl Serialize) -> bool {
        true
    }

    pub(crate) fn listen(&self, _: &'static str) -> Listener {
        Listener(self.0.messages.closed.clone())
    }
}

/// Receives nothing.
pub(crate) struct Listener(CancellationToken);

impl Listener {
    /// Ready when the server is gone.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        self.0.cancelled().await;
        None
    }
}
