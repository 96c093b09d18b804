//! The capabilities that are open on a server. The first item that names one opens it, when the server is built or when
//! the item is added later; it stays open, so that what it has begun can be brought to its end.

use std::{any::Any, fmt, sync::Arc};

use super::Server;
use crate::{
    arguments::BoxFuture,
    config::Options,
    dispatch::{Reply, Request, Response},
    events::{Filter, Hub},
    extensions::Extensions,
};

/// A part of the protocol that a server has only if something of it is named.
pub(crate) trait Capability: Any + Send + Sync {
    /// Its state on a server with these options.
    fn open(options: &Options, hub: &Hub) -> Arc<Self>
    where
        Self: Sized;

    /// Its key and its settings among the `extensions` that the server declares since 2026-07-28.
    fn extension(&self) -> (&'static str, &'static str);

    /// Answers a request of 2026-07-28; `None` if the method is another's.
    fn answer(self: Arc<Self>, request: Request<'_>) -> Option<Result<Response, Reply>>;

    /// Checks whether a client may subscribe to what it names by ids in `subscriptions/listen`.
    ///
    /// # Errors
    /// The reply that refuses it.
    fn check_subscriber(&self, request: &Request<'_>) -> Result<(), Reply>;

    /// Subscribes a filter to what has this id and belongs to this owner; `false` if it does not exist, or no longer
    /// changes.
    fn subscribe(&self, id: &str, owner: Option<&str>, filter: &Filter) -> bool;

    /// Ready when none of its functions runs.
    #[cfg_attr(
        not(any(feature = "stdio", feature = "http")),
        expect(dead_code, reason = "only stdio and HTTP wait at shutdown")
    )]
    fn wait_until_idle(self: Arc<Self>) -> BoxFuture<()>;

    /// Cancels the functions that run: no client can get their results any more.
    fn stop(&self);
}

/// The capabilities of one server; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Capabilities {
    by_type: Extensions,
    all: Vec<Arc<dyn Capability>>,
}

impl Capabilities {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Capability>> {
        self.all.iter()
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capabilities({})", self.all.len())
    }
}

/// Opens the capabilities that items name.
pub(crate) struct Opening<'a> {
    pub(crate) options: &'a Options,
    pub(crate) hub: &'a Hub,
    /// Those of the server so far.
    pub(crate) capabilities: Capabilities,
}

impl Opening<'_> {
    /// The state of a capability, which is opened if it is not open yet.
    pub(crate) fn open<C: Capability>(&mut self) -> Arc<C> {
        if let Some(open) = self.capabilities.by_type.get::<Arc<C>>() {
            return open.clone();
        }
        let opened = C::open(self.options, self.hub);
        self.capabilities.by_type.insert(opened.clone());
        self.capabilities.all.push(opened.clone());
        opened
    }
}

impl Server {
    /// Waits until no function runs outside of a request.
    #[cfg(any(feature = "stdio", feature = "http"))]
    pub(crate) async fn wait_until_idle(&self) {
        for capability in self.registry().capabilities.iter() {
            capability.clone().wait_until_idle().await;
        }
    }

    /// Cancels the functions that run outside of requests.
    #[cfg(any(feature = "stdio", feature = "http"))]
    pub(crate) fn stop_background(&self) {
        self.registry().capabilities.iter().for_each(|capability| capability.stop());
    }
}
