//! The tools of a server as one caller sees them. Who sees what is decided in `core/connection/access.rs` alone.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{Hints, ToolEntry};
use crate::core::{
    connection::{Access, ItemView, RequestContext},
    context::Context,
    protocol::Revision,
    server::{Entries, Entry as _, Registry, WeakServer, write_entry},
};

/// The items of the server as they are for one request: what is decided by them holds for the call that follows.
pub(crate) struct PinnedRegistry(pub(crate) Arc<Registry>);

/// The tools of a server that a caller may see, at one moment: [`Context::tools`].
#[derive(Clone)]
pub struct Tools {
    /// `None` if the server has been dropped.
    registry: Option<Arc<Registry>>,
    request: RequestContext,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

impl Context {
    /// The tools that the caller of this request may see: those of its `tools/list`, and those that
    /// [`listed`](crate::config::ListOptions::listed) leaves out there. None in a unit test.
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// The tools that change nothing.
    /// #[mcp_tool]
    /// fn harmless(ctx: &Context) -> String {
    ///     let tools = ctx.tools();
    ///     let names = tools.iter().filter(|(_, tool)| tool.hints().read_only == Some(true)).map(|(_, tool)| tool.name());
    ///     names.collect::<Vec<_>>().join(", ")
    /// }
    /// ```
    #[must_use]
    pub fn tools(&self) -> Tools {
        let server = || self.find::<WeakServer>().and_then(WeakServer::upgrade);
        let pinned = self.find::<PinnedRegistry>().map(|pinned| pinned.0.clone());
        let registry = pinned.or_else(|| Some(server()?.registry()));
        Tools { registry, request: self.inner().request.clone() }
    }
}

impl Tools {
    fn access(&self) -> Access<'_> {
        Access::new(self.request.caller.as_deref(), self.request.access_rules.as_deref())
    }

    fn all(&self) -> Option<&Entries<ToolEntry>> {
        self.registry.as_ref().map(|registry| &registry.tools)
    }

    /// The tools in the order of lists, each with its place among all tools of the server, also those that the caller may
    /// not see.
    pub fn iter(&self) -> impl Iterator<Item = (usize, ItemView<'_>)> {
        let all = self.all().into_iter().flat_map(|all| all.iter().map(move |tool| tool.view_in(all)));
        all.enumerate().filter(|(_, tool)| self.access().sees(*tool))
    }

    /// By the places of [`iter`](Self::iter), whether the caller may see the tool there: where many are not looked at further,
    /// that takes less time.
    #[must_use]
    pub fn visible(&self) -> Vec<bool> {
        let Some(all) = self.all() else { return Vec::new() };
        let access = self.access();
        if access.is_full() {
            return vec![true; all.iter().len()];
        }
        all.iter().map(|tool| access.sees(tool.view_in(all))).collect()
    }

    /// The tool at a place of [`iter`](Self::iter); `None` if none is there, or not for the caller.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<ItemView<'_>> {
        let all = self.all()?;
        all.iter().nth(place).map(|tool| tool.view_in(all)).filter(|tool| self.access().sees(*tool))
    }

    /// The tool of that name; `None` if it does not exist, or not for the caller.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<ItemView<'_>> {
        let all = self.all()?;
        all.any(name).map(|tool| tool.view_in(all)).filter(|tool| self.access().sees(*tool))
    }

    /// A number that another state of the items of this server, or another server of this process, does not have.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.registry.as_ref().map_or(0, |registry| registry.generation)
    }
}

/// How large the list of all tools of a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListSize {
    /// The tools, those included that only some callers may see.
    pub tools: usize,
    /// The bytes of their entries on the wire.
    pub bytes: usize,
}

// what is known of tools
impl<'a> ItemView<'a> {
    /// `title` of a tool.
    #[must_use]
    pub fn title(&self) -> Option<&'a str> {
        self.tool?.spec.item.title.as_deref()
    }

    /// `description` of a tool.
    #[must_use]
    pub fn description(&self) -> Option<&'a str> {
        self.tool?.spec.item.description.as_deref()
    }

    /// The hints on the behavior of a tool, as lists have them; no hint for other items.
    #[must_use]
    pub fn hints(&self) -> Hints {
        self.tool.map(|tool| tool.spec.hints).unwrap_or_default()
    }

    /// `inputSchema` of a tool.
    #[must_use]
    pub fn input_schema(&self) -> Option<&'a Value> {
        self.tool.map(|tool| tool.input.published())
    }

    /// Whether it is a tool that [passes its calls on](crate::tool::ToolBuilder::forwards).
    #[must_use]
    pub fn is_forwarder(&self) -> bool {
        self.tool.is_some_and(ToolEntry::is_forwarder)
    }

    /// Whether clients repeat arguments of the tool in HTTP headers: `x-mcp-header`.
    #[must_use]
    pub fn has_header_arguments(&self) -> bool {
        self.tool.is_some_and(|tool| !tool.header_params.is_empty())
    }

    /// Whether clients of 2026-07-28 must let calls of the tool become tasks.
    #[must_use]
    pub fn requires_task(&self) -> bool {
        #[cfg(feature = "tasks")]
        return self.tool.is_some_and(|tool| tool.spec.task == Some(super::TaskMode::Required));
        #[cfg(not(feature = "tasks"))]
        false
    }

    /// Whether hosts offer the tool to models, and not only to [apps](crate::guide::apps).
    #[must_use]
    pub fn is_for_models(&self) -> bool {
        let Some(spec) = self.tool.map(|tool| &tool.spec) else { return true };
        if !spec.visibility.is_empty() {
            return spec.visibility.contains(&"model");
        }
        // of a tool made at run time it is in the `_meta` that the program has written
        let written = spec.item.meta.as_deref().filter(|meta| meta.contains("visibility"));
        let meta: Option<Value> = written.and_then(|meta| serde_json::from_str(meta).ok());
        let visibility = meta.as_ref().and_then(|meta| meta.get("ui")?.get("visibility")?.as_array());
        visibility.is_none_or(|users| users.iter().any(|user| user == "model"))
    }

    /// How large the list of all tools is, for all callers together; known where a list is made, and in [`Context::tools`].
    #[must_use]
    pub fn list_size(&self) -> Option<ListSize> {
        let all = self.all?;
        let written = |tool: &Arc<ToolEntry>| write_entry(|out| tool.write(out, Revision::LATEST)).len();
        let bytes = *all.bytes.get_or_init(|| all.iter().map(written).sum());
        Some(ListSize { tools: all.iter().count(), bytes })
    }
}

impl ToolEntry {
    pub(crate) fn is_forwarder(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.forward.is_some())
    }
}
