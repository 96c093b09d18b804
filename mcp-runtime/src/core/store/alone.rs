//! Without the feature `shared` a server has no replicas: nothing is counted or kept together, and nothing is sent.

use std::{convert::Infallible, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{CallerRate, Found, SealedStore, StoreError, Table, Write, Written};
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

    pub(super) async fn remove(&self, _: &Table, _: &str) -> Result<(), StoreError> {
        match *self {}
    }

    pub(super) async fn put(&self, _: &Table, _: &str, _: Write<'_>) -> Result<Written, StoreError> {
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
    pub(super) process: Arc<str>,
    pub(super) closed: CancellationToken,
}

impl Default for Messages {
    fn default() -> Self {
        Self { process: random_id().unwrap_or_default().into(), closed: CancellationToken::new() }
    }
}

impl SealedStore {
    pub(crate) fn share_rate(&self, _: &CallerRate, _: &str, _: &str) {}

    pub(crate) fn close_messages(&self) {
        self.0.messages.closed.cancel();
    }
}
