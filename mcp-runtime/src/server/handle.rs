//! Changes a running server and notifies its clients.

use std::sync::{Arc, Weak, atomic::Ordering};

use super::{
    Error, Result, Server, ServerInner,
    assemble::assemble,
    item::{ItemSource, RegisteredItem},
};
use crate::{
    connection::{Access, Principal},
    events::Change,
    protocol::Revision,
    tool::ToolDef,
};

/// Adds and removes tools while a server runs, and publishes changes to clients; clones are handles of the same server.
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
pub struct ServerHandle(Weak<ServerInner>);

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

    /// Adds a tool, or replaces the one made at run time that has its name, and notifies clients.
    ///
    /// # Errors
    /// An annotated tool has its name, or its schema cannot be enforced, or the server has been dropped. Nothing has changed then.
    pub fn add_tool(&self, tool: ToolDef) -> Result<()> {
        self.update(|tools| tools.add(tool))
    }

    /// Removes a tool made at run time, and tells clients; whether there was one of that name.
    ///
    /// # Errors
    /// The server has been dropped.
    pub fn remove_tool(&self, name: &str) -> Result<bool> {
        let mut found = false;
        self.update(|tools| found = tools.remove(name))?;
        Ok(found)
    }

    /// Adds and removes any number of tools as one change: all of it or nothing, with one notification.
    ///
    /// Only clients that can see one of the added or removed tools are notified.
    ///
    /// ```
    /// # use mcp_runtime::tool::{ToolCall, ToolDef};
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().build()?;
    /// let handle = server.handle();
    /// handle.update(|tools| {
    ///     for name in ["one", "two"] {
    ///         tools.add(ToolDef::builder(name).handler(|_: ToolCall| async { "done" }));
    ///     }
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`add_tool`](Self::add_tool), for any of them.
    pub fn update(&self, edit: impl FnOnce(&mut Tools)) -> Result<()> {
        let shared = self.0.upgrade().ok_or_else(|| Error::from("the server has been dropped"))?;
        let mut items = shared.items.write();
        let mut tools = Tools { items: items.clone(), scopes: Vec::new() };
        edit(&mut tools);
        let Tools { items: changed, scopes } = tools;
        if scopes.is_empty() {
            return Ok(());
        }
        // skills are read once, by `build`
        let skills = shared.registry.read().skills.clone();
        let own = &super::builder::server_types();
        let registry = assemble(
            shared.identity.name(),
            &changed,
            &skills,
            own,
            shared.options.lists.require_descriptions,
        )
        .map_err(|errors| super::builder::report(&errors))?;
        let scoped = registry.scoped();
        if shared.without_callers.load(Ordering::Relaxed) && !scoped.is_empty() {
            return Err(Error::build(format!(
                "these items have `scopes`, but the server is served to clients whose callers are not identified: {}",
                scoped.join(", ")
            )));
        }
        *items = changed;
        *shared.registry.write() = Arc::new(registry);
        drop(items);
        let sees = |viewer: Access<'_>, scopes: &[String]| {
            viewer.allows(&scopes.iter().map(String::as_str).collect::<Vec<_>>())
        };
        shared.hub.publish_to(Change::Tools, |viewer| scopes.iter().any(|scopes| sees(viewer, scopes)));
        Ok(())
    }

    /// Notifies clients that the list of tools has changed for a reason that the server does not see: the wire's
    /// [`notifications/tools/list_changed`](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#list-changed-notification).
    pub fn tools_changed(&self) {
        self.publish(|| Change::Tools);
    }

    /// Notifies clients that the list of prompts has changed: the wire's
    /// [`notifications/prompts/list_changed`](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#list-changed-notification).
    pub fn prompts_changed(&self) {
        self.publish(|| Change::Prompts);
    }

    /// Notifies clients that the list of resources has changed, such as what a template's `list` function returns: the
    /// wire's
    /// [`notifications/resources/list_changed`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#list-changed-notification).
    pub fn resources_changed(&self) {
        self.publish(|| Change::Resources);
    }

    /// Notifies the subscribers of this URI that its contents have changed: the wire's
    /// [`notifications/resources/updated`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions).
    ///
    /// It is the whole URI, as clients read it. Scheme and host match ignoring case, the rest exactly.
    pub fn resource_updated(&self, uri: &str) {
        self.publish(|| Change::Updated(uri.into()));
    }

    /// Ends every open `subscriptions/listen` stream with its result; clients may open another.
    ///
    /// For programs that nest the [router](crate::Server::into_router) in an HTTP server of their own, whose graceful
    /// shutdown waits for open streams. The built-in transports end their streams when they stop.
    pub fn end_subscriptions(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.hub.close();
        }
    }

    /// Reads the [file with the keys](crate::config::Stores::keys_from_file) again: what is sealed from now on is sealed
    /// with the keys in it, and only they open what clients bring.
    ///
    /// # Errors
    /// The file cannot be read or contains an invalid key, or the keys are not from a file, or the server has been
    /// dropped. The keys are unchanged then.
    pub fn reload_keys(&self) -> Result<()> {
        let shared = self.0.upgrade().ok_or_else(|| Error::from("the server has been dropped"))?;
        shared.keys.reload().map_err(Error::from)
    }

    fn publish(&self, change: impl FnOnce() -> Change) {
        let Some(server) = self.0.upgrade().map(Server) else { return };
        let change = change();
        let offers = server.offers(Revision::LATEST);
        // the server did not declare the list
        let offered = match &change {
            Change::Prompts => offers.prompts,
            Change::Resources => offers.resources,
            _ => true,
        };
        if !offered {
            return;
        }
        let registry = server.registry();
        match &change {
            // a subscriber may have lost the scopes with which it subscribed
            Change::Updated(uri) if registry.has_scoped_resources() => {
                let uri = uri.clone();
                server.hub().publish_to(change, |access| registry.resource(&uri, access).is_some());
            }
            _ => server.hub().publish(change),
        }
    }

    /// Ends the open streams of a principal, whatever its scopes and expiry are: subscriptions, those that were opened
    /// with `GET`, the streams of calls that can be resumed, and HTTP+SSE. Calls go on.
    ///
    /// For programs that withdraw a principal's authentication before it [expires](crate::Principal::with_expiry). A
    /// client may open new streams, if it is authenticated again.
    pub fn end_streams_of(&self, principal: &Principal) {
        if let Some(shared) = self.0.upgrade() {
            shared.hub.end_streams_of(principal);
        }
    }
}

/// The tools of a server during an [`update`](ServerHandle::update).
pub struct Tools {
    items: Vec<RegisteredItem>,
    /// The scopes of each added or removed tool.
    scopes: Vec<Vec<String>>,
}

impl Tools {
    /// Adds a tool, or replaces the one made at run time that has its name.
    pub fn add(&mut self, tool: ToolDef) {
        self.remove(tool.name());
        self.scopes.push(tool.spec.item.scopes.clone());
        self.items.push(RegisteredItem {
            source: ItemSource::Runtime(Arc::new(tool)),
            prefix: String::new(),
            this: None,
            state: Arc::default(),
            requested: Arc::from([]),
        });
    }

    /// Removes a tool made at run time. Returns whether a tool of that name existed.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.items.len();
        let scopes = &mut self.scopes;
        self.items.retain(|item| match &item.source {
            ItemSource::Runtime(old) if old.name() == name => {
                scopes.push(old.spec.item.scopes.clone());
                false
            }
            _ => true,
        });
        self.items.len() < before
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools").field("changed", &self.scopes.len()).finish_non_exhaustive()
    }
}
