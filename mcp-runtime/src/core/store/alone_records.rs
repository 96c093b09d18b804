//! What the features that keep something in the store need of it, without the feature `shared`.

use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Received, SealedStore, Table};

impl SealedStore {
    pub(super) fn log_other_version(&self, _: &Table) {}

    /// Without a store of replicas there is nothing to reach.
    #[cfg(feature = "tasks")]
    pub(crate) fn reached_for(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    pub(crate) fn process(&self) -> &Arc<str> {
        &self.0.messages.process
    }

    pub(crate) fn send(&self, _: &'static str, _: &impl Serialize) -> bool {
        true
    }

    pub(crate) fn listen(&self, _: &'static str) -> NoMessages {
        NoMessages(self.0.messages.closed.clone())
    }
}

/// Receives nothing.
pub(crate) struct NoMessages(CancellationToken);

impl NoMessages {
    /// Ready when the server is gone.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        self.0.cancelled().await;
        None
    }
}
