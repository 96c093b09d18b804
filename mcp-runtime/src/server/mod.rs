//! A server: what it offers and its bounds. Made by [`ServerBuilder`], served by transports.

mod builder;
mod error;
mod handle;
mod identity;
mod item;
mod notice;
mod options;
mod task;

use std::sync::{
    Arc, RwLock, Weak,
    atomic::{AtomicBool, Ordering},
};

pub use builder::ServerBuilder;
pub(crate) use builder::{RequestType, report_forgotten};
pub use error::{Error, Result};
pub use handle::{ServerHandle, Tools};
use identity::Identity;
pub(crate) use options::{LONGEST, Options};

use crate::{
    context::{Settings, Viewer},
    protocol::Revision,
    registry::{Mirrored, Registered, Registry},
    seal::{Ring, Seal},
    subscribe::{Hub, Lists},
    task::Tasks,
};

/// A server, ready to be served over any transport, any number of times; clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    identity: Identity,
    options: Options,
    settings: Arc<Settings>,
    keys: Ring,
    /// Seals the state of calls that wait for input.
    states: Seal,
    /// Seals cursors of lists.
    cursors: Seal,
    request_types: Vec<RequestType>,
    require_docs: bool,
    items: RwLock<Vec<Registered>>,
    registry: RwLock<Arc<Registry>>,
    hub: Hub,
    tasks: Arc<Tasks>,
    /// Whether a handle was given out, so that there may be tools later on, and changes to tell of.
    handled: AtomicBool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // nobody can ask for them any more
        self.tasks.stop();
    }
}

/// A server, unless nobody holds it any more. What runs without a connection has this.
pub(crate) struct WeakServer(Weak<Shared>);

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
    pub(crate) changes: Lists,
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
    pub(crate) fn keys(&self) -> &Ring {
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
        self.0.registry.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Where changes are told to those who follow.
    pub(crate) fn hub(&self) -> &Hub {
        &self.0.hub
    }

    /// The `_meta` of every result in the stateless era, as JSON.
    pub(crate) fn identity(&self) -> &str {
        self.0.identity.meta()
    }

    /// The wire's `serverInfo`, as JSON.
    pub(crate) fn info_json(&self, revision: Revision) -> &str {
        self.0.identity.info(revision)
    }

    /// The name and version in it, as JSON.
    pub(crate) fn brief_info(&self) -> &str {
        self.0.identity.brief()
    }

    pub(crate) fn offers(&self, revision: Revision) -> Offers {
        let registry = self.0.registry.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let handled = self.0.handled.load(Ordering::Relaxed);
        // clients of the handshake era are told of no skill, and its files are no resources to them
        let skills = revision.is_modern() && !registry.skills.is_empty();
        let (resources, prompts) = (!registry.resources.is_empty() || skills, !registry.prompts.is_empty());
        Offers {
            tools: !registry.tools.is_empty() || handled,
            resources,
            prompts,
            completions: registry.completes,
            pages: registry.has_pages,
            changes: Lists { tools: handled, prompts: handled && prompts, resources: handled && resources },
            skills,
            tasks: registry.has_tasks,
        }
    }

    /// Headers that a tool's arguments are mirrored into.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has headers"))]
    pub(crate) fn mirrored(&self, tool: &str, viewer: Viewer<'_>) -> Arc<[Mirrored]> {
        let registry = self.registry();
        // a tool that is hidden must not be told from one that is not there
        registry
            .tool(tool)
            .filter(|tool| viewer.sees(&tool.scopes()))
            .map_or_else(|| Arc::from([]), |entry| entry.mirrored.clone())
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
