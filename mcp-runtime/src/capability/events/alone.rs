//! Without the feature `shared` a server has no replicas: its events are in the rings of this process.

use std::sync::Arc;

use super::ring::{EventRing, Occurrence};
use crate::core::server::{Result, Server};

pub(super) enum EventLog {}

pub(super) enum Appending {}

impl Appending {
    #[allow(clippy::needless_pass_by_value, reason = "as with the feature `shared`")]
    pub(super) fn of(_: Server, ring: Arc<EventRing>, _: &str, event: Occurrence) -> Result<Option<Self>> {
        ring.push(Arc::new(event));
        Ok(None)
    }

    pub(super) async fn run(self) -> Result<()> {
        match self {}
    }
}

impl EventRing {
    pub(super) async fn follow(&self, _: &Server) {}
}
