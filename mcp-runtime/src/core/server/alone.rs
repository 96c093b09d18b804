//! Without the feature `shared` a server has no replicas: nothing connects to a store, and changes go nowhere else.

use super::{RegisteredItem, Result, Server, handle::RelayedChange};
use crate::core::{
    build_error::BuildError,
    config::Options,
    crypto::KeyRing,
    observer::Observers,
    store::{CallerRate, SealedStore},
};

impl SealedStore {
    pub(super) fn of_server(
        _: &Options,
        _: &KeyRing,
        _: &str,
        _: &Observers,
        _: &mut Vec<BuildError>,
    ) -> Self {
        Self::in_memory()
    }

    pub(super) fn share_rates(&self, _: Option<&CallerRate>, _: &[RegisteredItem]) {}
}

impl Server {
    #[cfg(feature = "http")]
    pub(crate) fn check_store(&self) -> Result<()> {
        Ok(())
    }

    pub(super) async fn open_store(&self) -> Result<()> {
        Ok(())
    }

    pub(crate) fn join_replicas(&self) {}

    pub(super) fn serve_opened(&self) {}

    pub(super) fn relay(&self, _: &RelayedChange) {}
}
