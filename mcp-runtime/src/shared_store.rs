//! The store that replicas of a server share, and what only a program with one contains: how it is sealed, and what
//! replicas tell each other of changes.

use std::sync::Arc;

use crate::core::{
    config::Sharing,
    server::{ServerBuilder, open_relay},
    store::{SealedStore, Shared},
};

impl ServerBuilder {
    /// Sets the store that all replicas of the server share, such as `store::Redis`: what one of them keeps
    /// or records, each of them knows. Without it, a server keeps that in its memory.
    ///
    /// The store holds what is sealed with the server's [keys](crate::config::Stores::keys), which must be set and the same
    /// everywhere; a server without them does not start. It connects when serving begins.
    /// [Many replicas](crate::guide::cluster) has what is shared, and what happens while the store cannot be reached.
    pub fn shared(mut self, store: impl Shared + 'static) -> Self {
        let sharing = Sharing { store: Arc::new(store), seal: SealedStore::shared, open_relay };
        self.options.stores.shared = Some(sharing);
        self
    }
}
