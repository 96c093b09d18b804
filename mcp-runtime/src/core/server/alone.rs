//! Without the feature `shared` a server has no replicas: nothing connects to a store, and changes go nowhere else.

use super::{Result, Server, handle::RelayedChange};

impl Server {
    pub(super) async fn open_store(&self) -> Result<()> {
        Ok(())
    }

    pub(crate) fn join_replicas(&self) {}

    pub(super) fn serve_opened(&self) {}

    pub(super) fn relay(&self, _: &RelayedChange) {}
}
