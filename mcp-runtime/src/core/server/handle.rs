//! Changes a running server and notifies its clients.

use std::{
    fmt,
    sync::{Arc, Weak, atomic::Ordering},
    thread::{self, ThreadId},
};

use serde::{Deserialize, Serialize};

use super::{
    Error, Open, Registry, Result, Server, ServerInner,
    assemble::assemble,
    builder::report,
    item::{IntoRuntimeItem, ItemScope, ItemSource, RegisteredItem, RuntimeItem, RuntimeKey},
};
use crate::core::{
    build_error::BuildError,
    changes::Change,
    connection::{Access, ItemKind, ItemView, Principal, principal_digest},
    context::Context,
    protocol::ItemList,
    sync::{Mutex, RwLockWriteGuard},
};

/// A change as other replicas are told of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RelayedChange {
    Updated {
        uri: String,
        /// The caller whose call reported it, as a digest.
        by: Option<String>,
    },
    /// The streams of a principal end.
    StreamsEnded { issuer: String, subject: String },
    #[serde(untagged)]
    List(ItemList),
}

impl Server {
    /// Publishes an update to subscribers of this process that may read the resource. `concerns` says which of them are
    /// told; without it, of a resource that differs by caller, the one whose call `reporter` has made.
    pub(super) fn publish_update(
        &self,
        uri: &str,
        concerns: Option<&dyn Fn(&Principal) -> bool>,
        reporter: Option<&str>,
    ) {
        for capability in self.registry().capabilities.iter() {
            capability.publish_update(self, uri, concerns, reporter);
        }
    }

    /// Whether it is the first time that it is not known whom an update concerns.
    pub(crate) fn may_warn_of_update(&self) -> bool {
        !self.0.has_warned_of_update.swap(true, Ordering::Relaxed)
    }
}

/// Adds and removes tools, resources and prompts while a server runs, and publishes changes to clients; clones are
/// handles of the same server.
///
/// A function gets it as a parameter `&ServerHandle`, [`with_handle`](crate::ServerBuilder::with_handle) gives it to
/// any other code before the server runs, and [`Server::handle`](crate::Server::handle) to a program that holds the server. It
/// does not keep the server alive, and publishes nothing once the server is dropped.
///
/// ```
/// use mcp_runtime::{ServerHandle, prelude::*, testing::TestServer};
/// use serde_json::json;
///
/// /// Fills the cup.
/// #[mcp_tool]
/// fn fill(server: &ServerHandle) {
///     server.resource_updated("cup://mine");
/// }
///
/// /// The cup.
/// #[mcp_resource(uri = "cup://mine")]
/// fn cup() -> &'static str {
///     "full"
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let server = TestServer::new(mcp_runtime::server!().tool::<fill>().resource::<cup>())?;
/// server.call("fill", json!({})).await.expect_ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ServerHandle(pub(super) Weak<ServerInner>);

impl ServerHandle {
    pub(super) fn new(shared: Weak<ServerInner>) -> Self {
        Self(shared)
    }

    /// A handle of a dropped server, for unit tests of annotated functions.
    ///
    /// ```
    /// mcp_runtime::ServerHandle::for_test().tools_changed();
    /// ```
    #[must_use]
    pub fn for_test() -> Self {
        Self(Weak::new())
    }

    /// Adds a tool, resource or prompt, or replaces the one made at run time that has its name or URI, and notifies clients.
    /// It changes this process alone: where replicas share a store, each of them has to add it.
    ///
    /// Clients read the capabilities once. A server with a handle declares tools, resources with
    /// subscriptions, and prompts from the start; other capabilities are declared when an item needs them:
    /// tasks with the first tool that has a `task` option, completion with the first argument that completes.
    /// [`tasks`](crate::ServerBuilder::tasks) of the builder declares tasks from the start, and any resource
    /// or prompt with an argument that completes declares completion.
    ///
    /// # Errors
    /// Its definition is invalid, such as a schema that cannot be enforced, or an annotated item has its name, or the server
    /// has been dropped. Nothing has changed then.
    pub fn add(&self, item: impl IntoRuntimeItem) -> Result<()> {
        self.update(|items| items.add(item))
    }

    /// Removes a tool made at run time, and notifies clients. Returns whether one of that name existed.
    ///
    /// # Errors
    /// The server has been dropped.
    pub fn remove_tool(&self, name: &str) -> Result<bool> {
        let mut found = false;
        self.update(|items| found = items.remove_tool(name))?;
        Ok(found)
    }

    /// Removes a resource or template made at run time, and notifies clients. Returns whether one of that URI existed.
    ///
    /// # Errors
    /// It is the page of a tool, or the server has been dropped.
    pub fn remove_resource(&self, uri: &str) -> Result<bool> {
        let mut found = false;
        self.update(|items| found = items.remove_resource(uri))?;
        Ok(found)
    }

    /// Removes a prompt made at run time, and notifies clients. Returns whether one of that name existed.
    ///
    /// # Errors
    /// The server has been dropped.
    pub fn remove_prompt(&self, name: &str) -> Result<bool> {
        let mut found = false;
        self.update(|items| found = items.remove_prompt(name))?;
        Ok(found)
    }

    /// Adds and removes any number of items as one change: all of it or nothing, with one notification for each list. Like
    /// [`add`](Self::add), it changes this process alone.
    ///
    /// The closure gets a value with the methods `add`, `remove_tool`, `remove_resource` and `remove_prompt`. Only clients
    /// that can see one of the added or removed items are notified.
    ///
    /// ```
    /// # use mcp_runtime::{resource::{ResourceCall, ResourceDef}, tool::{ToolCall, ToolDef}};
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().build()?;
    /// let handle = server.handle();
    /// handle.update(|items| {
    ///     for name in ["one", "two"] {
    ///         items.add(ToolDef::builder(name).handler(|_: ToolCall| async { "done" }));
    ///     }
    ///     items.add(ResourceDef::builder("notes://all").handler(|_: ResourceCall| async { "none yet" }));
    ///     items.remove_prompt("old");
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`add`](Self::add), for any of them; and if it is called, or `add` or `remove_..` of a handle are, inside of the
    /// closure of an update.
    pub fn update(&self, edit: impl FnOnce(&mut RuntimeItems)) -> Result<()> {
        let shared = self.0.upgrade().ok_or_else(|| Error::from("the server has been dropped"))?;
        let items = ItemsInChange::lock(&shared)?;
        let mut edited =
            RuntimeItems { items: items.guard.clone(), scope: shared.scope.clone(), changes: Vec::new() };
        edit(&mut edited);
        let RuntimeItems { items: edited, changes, .. } = edited;
        if !changes.is_empty() {
            Self::apply(&shared, items, edited, &changes)?;
        }
        Ok(())
    }

    /// The part of [`update`](Self::update) that is not generic, so that it is compiled once. Replaces `items`.
    pub(super) fn apply(
        shared: &Arc<ServerInner>,
        mut items: ItemsInChange<'_>,
        edited: Vec<RegisteredItem>,
        changes: &[ItemChange],
    ) -> Result<Arc<Registry>> {
        let registry =
            shared.assemble_again(&edited).map_err(|errors| report("the update was not applied", &errors))?;
        let scoped = registry.scoped();
        if shared.without_callers.load(Ordering::Relaxed) && !scoped.is_empty() {
            return Err(Error::build(format!(
                "these items have `scopes`, but the server is served to clients whose callers are not identified: {}",
                scoped.join(", ")
            )));
        }
        let registry = Arc::new(registry);
        *items.guard = edited;
        *shared.registry.write() = registry.clone();
        drop(items);
        Server(shared.clone()).serve_opened();
        let lists = [ItemList::Tools, ItemList::Resources, ItemList::Prompts].map(Change::List);
        let replaced = changes.iter().filter_map(|change| change.replaced_uri.as_deref());
        let updates = replaced.map(|uri| Change::Updated(uri.into()));
        for published in lists.into_iter().chain(updates) {
            let of_list = changes.iter().filter(|change| match &published {
                Change::Updated(uri) => change.replaced_uri.as_deref() == Some(&**uri),
                list => Change::List(change.kind.list()) == *list,
            });
            let changed: Vec<&ItemChange> = of_list.collect();
            if !changed.is_empty() {
                let may_show_others = shared.parts.options.lists.listed.is_some();
                let sees = |viewer: Access<'_>| {
                    may_show_others || changed.iter().any(|change| viewer.sees(change.view()))
                };
                shared.parts.hub.publish_to(published, sees);
            }
        }
        Ok(registry)
    }

    /// Notifies clients that the list of tools has changed for a reason that the server does not see: on the wire,
    /// [`notifications/tools/list_changed`](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#list-changed-notification).
    pub fn tools_changed(&self) {
        self.publish(ItemList::Tools);
    }

    /// Notifies clients that the list of prompts has changed: on the wire,
    /// [`notifications/prompts/list_changed`](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#list-changed-notification).
    pub fn prompts_changed(&self) {
        self.publish(ItemList::Prompts);
    }

    /// Notifies clients that the list of resources has changed, such as the result of a template's `list` function: on the wire,
    /// [`notifications/resources/list_changed`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#list-changed-notification).
    pub fn resources_changed(&self) {
        self.publish(ItemList::Resources);
    }

    pub(crate) fn server(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }

    /// Notifies the subscribers of this URI that its contents have changed: on the wire,
    /// [`notifications/resources/updated`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    ///
    /// It is the whole URI, as clients read it. Scheme and host match ignoring case, the rest exactly.
    ///
    /// On a server that identifies its callers, only subscribers that may read the resource at that moment
    /// are notified: those with its scopes to which it is visible. If its function depends on the reader (it
    /// takes `&Principal`, `#[mcp(inject)]` or a value of middleware), contents may differ by caller. Then
    /// only subscribers of the principal whose call reports the change are notified, and none outside of a
    /// call, unless a `subscribe` function admitted them. Use
    /// [`resource_updated_for`](Self::resource_updated_for) to name others.
    pub fn resource_updated(&self, uri: &str) {
        self.publish_update(uri, None);
    }

    /// Notifies those subscribers of this URI for whose principal `concerns` returns `true`, such as those of a tenant. They
    /// must be allowed to read the resource as well.
    ///
    /// It is called for each subscriber, so it must be fast; if it panics, that subscriber is not notified.
    /// Anonymous callers are not notified. A server without callers, such as one on stdio, notifies its one
    /// client.
    ///
    /// The function belongs to this process: subscribers at replicas that [share a
    /// store](crate::ServerBuilder::shared) are not notified. Call it at each replica, for example when an
    /// [event](crate::guide::events) or a queue of your own reports there; or call
    /// [`resource_updated`](Self::resource_updated), which tells all that may read the resource.
    ///
    /// ```
    /// use mcp_runtime::{Principal, ServerHandle, prelude::*};
    ///
    /// fn tenant(caller: &Principal) -> Option<&str> {
    ///     caller.claims()?.get("tenant")?.as_str()
    /// }
    ///
    /// /// The orders of the caller's tenant.
    /// #[mcp_resource(uri = "orders://all")]
    /// fn orders(caller: &Principal) -> String {
    ///     format!("the orders of {}", tenant(caller).unwrap_or_default())
    /// }
    ///
    /// fn order_came_in(handle: &ServerHandle, of: &str) {
    ///     handle.resource_updated_for("orders://all", |caller| tenant(caller) == Some(of));
    /// }
    /// # order_came_in(&ServerHandle::for_test(), "acme");
    /// ```
    pub fn resource_updated_for(&self, uri: &str, concerns: impl Fn(&Principal) -> bool) {
        self.publish_update(uri, Some(&concerns));
    }

    /// Ends every open `subscriptions/listen` stream with its result; clients may open another.
    ///
    /// For programs that nest the [router](crate::Server::into_router) in an HTTP server of their own, whose graceful
    /// shutdown waits for open streams. The built-in transports end their streams when they stop.
    pub fn end_subscriptions(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.parts.hub.close();
        }
    }

    /// Reads the [file with the keys](crate::config::Stores::keys_from_file) again: from now on only these
    /// keys seal and open client state.
    ///
    /// # Errors
    /// The file cannot be read or contains an invalid key, or the keys are not from a file, or the server has been
    /// dropped. The keys are unchanged then.
    pub fn reload_keys(&self) -> Result<()> {
        let shared = self.0.upgrade().ok_or_else(|| Error::from("the server has been dropped"))?;
        shared.parts.keys.reload().map_err(Error::from)
    }

    /// Notifies clients that a list has changed.
    pub(crate) fn publish(&self, list: ItemList) {
        let Some(server) = self.server() else { return };
        server.relay(&RelayedChange::List(list));
        server.hub().publish(Change::List(list));
    }

    /// Publishes an update to subscribers that may read the resource; `concerns` says which of them are told.
    fn publish_update(&self, uri: &str, concerns: Option<&dyn Fn(&Principal) -> bool>) {
        let Some(server) = self.server() else { return };
        let current = Context::current();
        let reporter = principal_digest(current.as_ref().and_then(Context::caller));
        // a function is of this process
        if concerns.is_none() {
            let by = reporter.as_deref().map(str::to_owned);
            server.relay(&RelayedChange::Updated { uri: uri.to_owned(), by });
        }
        server.publish_update(uri, concerns, reporter.as_deref());
    }

    /// Ends the open streams of a principal, whatever its scopes and expiry are: subscriptions, those that were opened
    /// with `GET`, the streams of calls that can be resumed, and HTTP+SSE; and its subscriptions to events by webhook. Calls go
    /// on.
    ///
    /// For programs that withdraw a principal's authentication before it [expires](crate::Principal::with_expiry). The
    /// verdicts on its tokens are forgotten; a client may open new streams, if it is authenticated again.
    ///
    /// Replicas that [share a store](crate::ServerBuilder::shared) do the same, once the store is reachable.
    /// A replica that is disconnected at that moment does not.
    pub fn end_streams_of(&self, principal: &Principal) {
        let Some(server) = self.server() else { return };
        server.relay(&RelayedChange::StreamsEnded {
            issuer: principal.issuer().to_owned(),
            subject: principal.subject().to_owned(),
        });
        server.end_streams_of(principal);
    }
}

impl Server {
    /// Ends the streams of a principal in this process.
    pub(super) fn end_streams_of(&self, principal: &Principal) {
        #[cfg(feature = "http")]
        if let Some(authenticator) = &self.0.parts.options.http.authenticator {
            authenticator.forget(principal);
        }
        self.0.end_of_principal(principal);
    }
}

impl ServerInner {
    /// Ends the streams of a principal at this replica, and what capabilities do for it besides.
    pub(super) fn end_of_principal(self: &Arc<Self>, principal: &Principal) {
        self.parts.hub.end_streams_of(principal);
        let server = Server(self.clone());
        for capability in server.registry().capabilities.iter() {
            capability.clone().end_of_principal(&server, principal);
        }
    }

    /// The registry of these items, with the capabilities that are open.
    fn assemble_again(&self, items: &[RegisteredItem]) -> std::result::Result<Registry, Vec<BuildError>> {
        let open = self.registry.read().lasting.clone();
        let opens = self.opens.read().clone();
        assemble(&self.parts, items, &opens, open)
    }

    /// Opens a capability after the server was built.
    pub(super) fn open_later(&self, open: Open) {
        let items = self.items.write();
        self.opens.write().push(open);
        // the same items as before, so nothing is wrong with them
        if let Ok(registry) = self.assemble_again(&items) {
            *self.registry.write() = Arc::new(registry);
        }
    }
}

/// The items of a server, which one thread changes. The code of the program that runs meanwhile must not change them.
pub(super) struct ItemsInChange<'a> {
    pub(super) guard: RwLockWriteGuard<'a, Vec<RegisteredItem>>,
    changed_by: &'a Mutex<Option<ThreadId>>,
}

impl<'a> ItemsInChange<'a> {
    /// Waits until no other thread changes them.
    ///
    /// # Errors
    /// This thread changes them, and would wait for itself.
    pub(super) fn lock(shared: &'a ServerInner) -> Result<Self> {
        let this = Some(thread::current().id());
        if *shared.items_changed_by.lock() == this {
            return Err(Error::from(
                "the items of the server are changed inside of `update`\n\
                 use the argument of its closure, or the handle after it has returned",
            ));
        }
        let guard = shared.items.write();
        *shared.items_changed_by.lock() = this;
        Ok(Self { guard, changed_by: &shared.items_changed_by })
    }
}

impl Drop for ItemsInChange<'_> {
    fn drop(&mut self) {
        *self.changed_by.lock() = None;
    }
}

/// The items of a server during an [`update`](ServerHandle::update).
pub struct RuntimeItems {
    items: Vec<RegisteredItem>,
    /// The server's.
    scope: ItemScope,
    changes: Vec<ItemChange>,
}

/// An item that was added or removed.
pub(super) struct ItemChange {
    /// The list that it is in.
    kind: ItemKind,
    /// Its name or URI.
    name: String,
    scopes: Vec<String>,
    tags: &'static [&'static str],
    /// The URI of a single resource that was replaced.
    replaced_uri: Option<String>,
}

impl RuntimeItems {
    /// Adds a tool, resource or prompt, or replaces the one made at run time that has its name or URI.
    pub fn add(&mut self, item: impl IntoRuntimeItem) {
        let item = item.into_runtime_item();
        let replaced = self.remove(item.0.key());
        let mut change = ItemChange::of(&item);
        let key = item.0.key();
        if key.kind == ItemKind::Resource && replaced && !key.name.contains('{') {
            change.replaced_uri = Some(key.name.to_owned());
        }
        self.changes.push(change);
        let item = RegisteredItem::new(ItemSource::Runtime(item));
        self.items.push(item.registered(&self.scope));
    }

    /// Removes a tool made at run time. Returns whether one of that name existed.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        self.remove(RuntimeKey { kind: ItemKind::Tool, name })
    }

    /// Removes a resource or template made at run time. Returns whether one of that URI existed.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        self.remove(RuntimeKey { kind: ItemKind::Resource, name: uri })
    }

    /// Removes a prompt made at run time. Returns whether one of that name existed.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        self.remove(RuntimeKey { kind: ItemKind::Prompt, name })
    }

    fn remove(&mut self, key: RuntimeKey<'_>) -> bool {
        let before = self.items.len();
        let changes = &mut self.changes;
        // those of an addition are its own
        self.items.retain(|item| match item.runtime(key).filter(|_| item.place.is_none()) {
            Some(old) => {
                changes.push(ItemChange::of(old));
                false
            }
            None => true,
        });
        self.items.len() < before
    }
}

impl ItemChange {
    pub(super) fn of(item: &RuntimeItem) -> Self {
        let RuntimeKey { kind, name } = item.0.key();
        let (name, scopes, tags) = (name.to_owned(), item.0.spec().scopes.clone(), item.0.tags());
        Self { kind, name, scopes, tags, replaced_uri: None }
    }

    /// The part that access decisions use.
    fn view(&self) -> ItemView<'_> {
        let Self { kind, name, scopes, tags, .. } = self;
        ItemView { tags, ..ItemView::new(*kind, name, scopes) }
    }
}

impl fmt::Debug for RuntimeItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeItems").field("changed", &self.changes.len()).finish_non_exhaustive()
    }
}
