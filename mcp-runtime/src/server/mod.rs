//! A server: what it offers and its bounds. Made by [`ServerBuilder`], served by transports.

mod assemble;
mod builder;
mod error;
mod handle;
#[cfg(feature = "http")]
mod http;
mod identity;
mod item;
mod list_cache;
mod notice;
mod registry;
mod task;
mod ui;

use std::{
    any::Any,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

pub(crate) use assemble::assemble;
pub use builder::ServerBuilder;
pub(crate) use builder::{RequestType, report_forgotten};
pub use error::{Error, ErrorKind, Result};
pub use handle::{ServerHandle, Tools};
#[cfg(feature = "http")]
pub use http::IntoPrincipal;
pub(crate) use identity::Identity;
pub use item::{AnnotatedItem, Service};
pub(crate) use item::{ItemSource, RegisteredItem};
pub(crate) use list_cache::{ListCache, ListKind, Page, page_of};
pub(crate) use registry::Registry;

use crate::{
    config::Options,
    context::Settings,
    crypto::{KeyRing, Seal},
    events::{Hub, ListChanges},
    protocol::Revision,
    sync::RwLock,
    task::Tasks,
};

/// A server, ready to be served over any transport, any number of times; clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<ServerInner>);

struct ServerInner {
    identity: Arc<Identity>,
    options: Options,
    settings: Arc<Settings>,
    keys: KeyRing,
    /// Seals the state of calls that wait for input.
    states: Seal,
    /// Seals cursors of lists.
    cursors: Seal,
    /// What stands around every call, as dispatch knows it.
    layers: Option<Arc<dyn Any + Send + Sync>>,
    request_types: Vec<RequestType>,
    require_docs: bool,
    items: RwLock<Vec<RegisteredItem>>,
    registry: RwLock<Arc<Registry>>,
    hub: Hub,
    tasks: Arc<Tasks>,
    /// Whether a handle was given out, so that there may be tools later on, and changes to tell of.
    handled: AtomicBool,
    /// Whether it is served to clients that are not told apart.
    without_callers: AtomicBool,
}

impl Drop for ServerInner {
    fn drop(&mut self) {
        // nobody can ask for them any more
        self.tasks.stop();
    }
}

/// A server, unless nobody holds it any more. What runs without a connection has this.
pub(crate) struct WeakServer(Weak<ServerInner>);

impl WeakServer {
    pub(crate) fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }
}

/// Which capabilities there are: derived from what is registered, never written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    pub(crate) completions: bool,
    /// Pages of the apps extension.
    pub(crate) pages: bool,
    /// The lists whose changes are told to whoever can be told.
    pub(crate) changes: ListChanges,
    pub(crate) skills: bool,
    /// The extension: calls may become tasks.
    pub(crate) tasks: bool,
}

impl Server {
    /// Starts a server of that name and version; [`server!`](crate::server) takes both from the user's `Cargo.toml`.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name, version, "")
    }

    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.identity.name
    }

    /// The server's version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.identity.version
    }

    /// What the server tells models about its use.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.0.identity.instructions.as_deref()
    }

    /// From now on clients that are not told apart call it: the items that have `scopes`, which must not be there.
    #[cfg(feature = "http")]
    pub(crate) fn serve_without_callers(&self) -> Vec<String> {
        self.0.without_callers.store(true, Ordering::Relaxed);
        self.registry().scoped()
    }

    /// A handle that adds and removes tools while the server runs, and tells clients what has changed.
    ///
    /// Take it before you serve: clients ask once what a server can tell them, and without a handle it is nothing.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.0.handled.store(true, Ordering::Relaxed);
        ServerHandle::new(Arc::downgrade(&self.0))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    /// What all calls have in common.
    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.0.settings
    }

    /// The keys that everything a client carries for us is sealed with.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has sessions"))]
    pub(crate) fn keys(&self) -> &KeyRing {
        &self.0.keys
    }

    /// Seals and opens the state of calls that wait for input.
    pub(crate) fn states(&self) -> &Seal {
        &self.0.states
    }

    /// Its calls that go on as tasks.
    pub(crate) fn tasks(&self) -> &Arc<Tasks> {
        &self.0.tasks
    }

    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }

    /// Seals and opens cursors of lists.
    pub(crate) fn cursors(&self) -> &Seal {
        &self.0.cursors
    }

    /// Declared types that middleware puts into requests.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has middleware"))]
    pub(crate) fn request_types(&self) -> &[RequestType] {
        &self.0.request_types
    }

    /// Whether callers are told apart, so that lists may differ between them.
    pub(crate) fn authenticates(&self) -> bool {
        self.0.options.authenticates
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.0.registry.read().clone()
    }

    /// Where changes are told to those who follow.
    pub(crate) fn hub(&self) -> &Hub {
        &self.0.hub
    }

    /// What the server says of itself.
    pub(crate) fn identity(&self) -> &Arc<Identity> {
        &self.0.identity
    }

    /// What stands around every call, as dispatch knows it.
    pub(crate) fn layers_as<T: Any>(&self) -> Option<&T> {
        self.0.layers.as_ref()?.downcast_ref()
    }

    pub(crate) fn offers(&self, revision: Revision) -> Offers {
        self.offers_of(&self.registry(), revision)
    }

    /// The same with what is registered at this moment.
    pub(crate) fn offers_of(&self, registry: &Registry, revision: Revision) -> Offers {
        let handled = self.0.handled.load(Ordering::Relaxed);
        // clients of handshake revisions do not know skills, and their files are not resources to them
        let skills = revision.is_modern() && registry.has_skills;
        let resources = registry.has_resources || skills;
        let prompts = registry.has_prompts;
        Offers {
            tools: registry.has_tools || handled,
            resources,
            prompts,
            completions: registry.completes,
            pages: registry.has_pages,
            changes: ListChanges {
                tools: handled,
                prompts: handled && prompts,
                resources: handled && resources,
            },
            skills,
            tasks: registry.has_tasks,
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
