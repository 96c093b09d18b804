//! A server: its builder, its registry of items, and the handle that changes it while it runs.

mod added_store;
mod assemble;
mod builder;
mod changing;
mod entries;
mod error;
mod handle;
mod identity;
mod item;
mod list_cache;
mod open_capabilities;
mod parts;
mod registry;
#[cfg_attr(not(feature = "shared"), path = "alone.rs")]
mod relay;
#[cfg(feature = "auth")]
mod reload_auth;
mod service_block;
#[cfg(feature = "install")]
mod setting_to_install;
mod state;
mod transform;

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread::ThreadId,
};

pub use added_store::AddedStore;
pub(crate) use assemble::{Assembly, unknown_page};
pub use builder::ServerBuilder;
pub(crate) use builder::unregistered;
pub(crate) use builder::warn_of_unregistered_items;
pub use changing::{AddedItems, ItemEdits, RefusedItem};
pub(crate) use entries::{Entries, Entry};
pub use error::{Error, ErrorKind, Result};
pub use handle::ServerHandle;
pub(crate) use identity::Identity;
use item::ItemScope;
pub use item::{Addition, AnnotatedItem, IntoAddition};
pub(crate) use item::{
    Annotation, IntoRuntimeItem, ItemSource, MadeItem, Named, RegisteredItem, RuntimeItem, RuntimeKey,
    comparable_uri, impl_additions, named_functions,
};
pub(crate) use list_cache::{EncodedPage, List, PageCache, SealedCursor, page_of};
pub(crate) use open_capabilities::{Capabilities, Capability, CompletionOfItem, Declared, Open};
pub(crate) use parts::Parts;
pub(crate) use registry::{Registry, write_entry};
pub use service_block::ServiceBlock;
#[cfg(feature = "install")]
pub(crate) use setting_to_install::SettingToInstall;
pub(crate) use state::MadeState;
pub(crate) use state::short_name;
pub use transform::{ItemChanges, Transformed};

use changing::AwaitedItems;

use crate::core::{
    admission::{Owner, RateReached},
    changes::{Hub, ListChanges},
    client_error::ErrorContext,
    config::Options,
    connection::{AccessRules, RequestContext},
    context::Settings,
    crypto::{KeyRing, Seal},
    log_limit::ServerLogLimits,
    maybe_ready::MaybeReady,
    observer::Observers,
    protocol::ItemList,
    spawn::spawn_on,
    store::SealedStore,
    sync::{Mutex, RwLock},
};
#[cfg(feature = "config")]
use crate::settings::ReadSettings;

/// A server, ready to be served over any transport, any number of times; clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<ServerInner>);

// what a server is made of; each field has methods of the server beside it, and nothing is set together with another one
struct ServerInner {
    parts: Parts,
    settings: Arc<Settings>,
    /// The settings of the program, if it has some.
    #[cfg(feature = "config")]
    server_settings: Option<ReadSettings>,
    /// Seals `requestState`.
    states: Seal,
    /// Seals cursors of lists.
    cursors: Seal,
    /// The builder's, for items that are added later.
    scope: ItemScope,
    items: RwLock<Vec<RegisteredItem>>,
    /// The thread that changes the items.
    items_changed_by: Mutex<Option<ThreadId>>,
    /// Opens capabilities, besides the items.
    opens: RwLock<Vec<Open>>,
    /// What of the state of all builders is made when the server opens.
    made_state: Arc<MadeState>,
    registry: RwLock<Arc<Registry>>,
    /// Whether a handle exists, so that items may be added and changes published.
    has_handle: AtomicBool,
    /// Whether a handle exists that may publish updates of resources.
    publishes: AtomicBool,
    /// Additions whose first items are awaited.
    awaited: Arc<AwaitedItems>,
    /// Whether the server is served to clients whose callers are not identified.
    without_callers: AtomicBool,
    /// Whether what a resource returns may differ by caller, and no check decides who is notified of its updates.
    differs_by_caller: bool,
    /// Whether the warning was logged that it is not known whom an update concerns.
    has_warned_of_update: AtomicBool,
    log_limits: ServerLogLimits,
}

impl Drop for ServerInner {
    fn drop(&mut self) {
        self.made_state.end_later();
        self.parts.store.close_messages();
        // no client can get them any more
        for capability in self.registry.read().capabilities.iter() {
            capability.stop();
            if self.parts.store.is_shared()
                && let Ok(runtime) = tokio::runtime::Handle::try_current()
            {
                let _settles = spawn_on(&runtime, capability.clone().settle());
            }
        }
    }
}

/// A server that may have been dropped; for work that does not belong to a connection.
#[derive(Clone)]
pub(crate) struct WeakServer(Weak<ServerInner>);

impl WeakServer {
    pub(crate) fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }
}

impl Server {
    /// Starts a server of that name and version; [`server!`](macro@crate::server) takes both from the user's `Cargo.toml`.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(&name.into(), &version.into(), "")
    }

    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.parts.identity.name()
    }

    /// The server's version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.0.parts.identity.version()
    }

    /// `instructions` on the wire.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.0.parts.identity.instructions()
    }

    /// Whether updates of some resource are those of the caller that reports them.
    pub(crate) fn differs_by_caller(&self) -> bool {
        self.0.differs_by_caller
    }

    /// Records that clients without identified callers are served; returns the items with `scopes`, of which none may
    /// exist.
    pub(crate) fn serve_without_callers(&self) -> Vec<String> {
        self.0.without_callers.store(true, Ordering::Relaxed);
        self.registry().scoped()
    }

    /// A handle, which opens these capabilities.
    pub(crate) fn handle_of(&self, open: Open) -> ServerHandle {
        self.0.has_handle.store(true, Ordering::Relaxed);
        if !self.0.publishes.swap(true, Ordering::Relaxed) {
            self.0.open_later(open);
            self.serve_opened();
        }
        ServerHandle::new(Arc::downgrade(&self.0))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.parts.options
    }

    pub(crate) fn log_limits(&self) -> &ServerLogLimits {
        &self.0.log_limits
    }

    /// The item that an error belongs to.
    pub(crate) fn error_context<'a>(&'a self, kind: &'static str, name: &'a str) -> ErrorContext<'a> {
        let log_limits = &self.0.log_limits.failures;
        ErrorContext { kind, name, detailed: self.0.parts.options.detailed_errors, log_limits }
    }

    /// Counts one request towards the rate of its owner, if there is one.
    pub(crate) fn take_rate(&self, owner: impl FnOnce() -> Owner) -> MaybeReady<Result<(), RateReached>> {
        match &self.0.parts.rate {
            None => MaybeReady::Ready(Ok(())),
            Some(rate) => rate.take(&owner()),
        }
    }

    /// The same where nothing can be waited for.
    ///
    /// # Errors
    /// The owner has used up its rate, as far as this process knows.
    pub(crate) fn take_rate_at_once(&self, owner: impl FnOnce() -> Owner) -> Result<(), RateReached> {
        self.0.parts.rate.as_ref().map_or(Ok(()), |rate| rate.take_at_once(&owner()))
    }

    /// What watches its requests.
    pub(crate) fn observers(&self) -> &Observers {
        &self.0.parts.observers
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.0.settings
    }

    /// The settings of the program, if it has some.
    #[cfg(feature = "config")]
    pub(crate) fn server_settings(&self) -> Option<&ReadSettings> {
        self.0.server_settings.as_ref()
    }

    /// The keys that seal what clients carry for the server.
    pub(crate) fn keys(&self) -> &KeyRing {
        &self.0.parts.keys
    }

    /// State that outlives calls, in memory or shared by replicas.
    pub(crate) fn store(&self) -> &SealedStore {
        &self.0.parts.store
    }

    /// Seals and opens `requestState`.
    pub(crate) fn states(&self) -> &Seal {
        &self.0.states
    }

    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }

    /// Seals and opens cursors of lists.
    pub(crate) fn cursors(&self) -> &Seal {
        &self.0.cursors
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.0.registry.read().clone()
    }

    /// Publishes changes to subscribers.
    pub(crate) fn hub(&self) -> &Hub {
        &self.0.parts.hub
    }

    pub(crate) fn identity(&self) -> &Arc<Identity> {
        &self.0.parts.identity
    }

    /// How a transport that identifies callers decides what they may do.
    pub(crate) fn access_rules(&self) -> &Arc<AccessRules> {
        &self.0.parts.access_rules
    }

    /// The context of requests of the client that started the program, or that the program itself connected.
    pub(crate) fn host_context(&self) -> RequestContext {
        let caller = self.options().stdio.caller.clone();
        let access_rules = caller.is_some().then(|| self.access_rules().clone());
        RequestContext { caller, access_rules, ..RequestContext::default() }
    }

    /// The lists whose changes clients of any revision are notified of.
    pub(crate) fn list_changes(&self) -> ListChanges {
        // clients read the capabilities once, and a handle may change anything later
        ItemList::ALL.iter().copied().filter(|list| self.has_handle() && list.is_legacy()).collect()
    }

    /// Whether items may be added and changes published.
    pub(crate) fn has_handle(&self) -> bool {
        self.0.has_handle.load(Ordering::Relaxed)
    }

    /// Whether updates of resources may be published.
    pub(crate) fn publishes(&self) -> bool {
        self.0.publishes.load(Ordering::Relaxed)
    }

    /// Whether the first items of some addition are not there yet.
    pub(crate) fn awaits_items(&self) -> bool {
        !self.0.awaited.is_empty()
    }

    /// Waits for the first items of all additions, for a short time.
    pub(crate) async fn first_items(&self) {
        self.0.awaited.arrive().await;
    }

    /// Whether clients are offered tools.
    pub(crate) fn offers_tools(&self, registry: &Registry) -> bool {
        !registry.tools.is_empty() || self.has_handle()
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
