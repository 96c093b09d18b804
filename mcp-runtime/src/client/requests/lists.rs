//! Lists of a server: all pages, kept as long as the server allows or until it reports a change.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::{listed_items::ToolInfo, read_cache::Caller};
use crate::client::{
    Error,
    connect::shared_client::{CallOptions, Connection, SharedClient},
    exchange::{ListBounds, ListPages, ListedKind, PageError},
    large_text::run_by_size,
    link::ServerLink,
    receive::{handlers::ChangeEvent, inbox::Stale},
};
use crate::core::{protocol::EVENTS_EXTENSION, visible_text::in_one_line};

/// Callers whose lists are kept.
const MAX_CALLERS: usize = 16;
/// Entries of one list that are named in the log when they are left out.
const MAX_LOGGED: usize = 10;

/// The lists that are kept.
#[derive(Default)]
pub(in crate::client) struct ListCaches {
    /// By caller, since a server may show each its own; the last used is the last. At most one fetch of each list runs at a time.
    slots: [tokio::sync::Mutex<Vec<KeptList>>; 6],
    /// Count the changes that the server has reported.
    epochs: [AtomicU64; 6],
}

struct KeptList {
    caller: Caller,
    entries: Vec<Arc<Value>>,
    /// Bytes of its pages, as the server sent them.
    bytes: usize,
    /// `None`: until the server reports a change.
    until: Option<Instant>,
    epoch: u64,
}

impl ListCaches {
    pub(in crate::client) fn invalidate(&self, stale: Stale<'_>) {
        match stale {
            Stale::Tools => self.next_epoch(ListedKind::Tools),
            Stale::Prompts => self.next_epoch(ListedKind::Prompts),
            Stale::Resources => {
                self.next_epoch(ListedKind::Resources);
                self.next_epoch(ListedKind::Templates);
                // their files are resources
                #[cfg(feature = "skills")]
                self.next_epoch(ListedKind::Skills);
            }
            Stale::Events => self.next_epoch(ListedKind::Events),
            Stale::Resource(_) => {}
        }
    }

    pub(in crate::client) fn invalidate_all(&self) {
        for stale in [Stale::Tools, Stale::Prompts, Stale::Resources, Stale::Events] {
            self.invalidate(stale);
        }
    }

    fn next_epoch(&self, kind: ListedKind) {
        self.epochs[kind as usize].fetch_add(1, Ordering::SeqCst);
    }
}

impl SharedClient {
    /// The entries of a list; from the server if `refresh`, or if what is kept may be stale.
    pub(in crate::client) async fn list(
        &self,
        kind: ListedKind,
        refresh: bool,
        options: &CallOptions,
    ) -> Result<Vec<Arc<Value>>, Error> {
        let connection = self.connection()?;
        let declared = require(&connection, kind.capability());
        // drafts had it elsewhere
        match kind {
            ListedKind::Events => declared.or_else(|_| require(&connection, EVENTS_EXTENSION))?,
            _ => declared?,
        }
        // a list may depend on the request's own `_meta`
        if !options.meta.is_empty() {
            return self.fetch_entries(&connection, kind, options).await.map(|(entries, ..)| entries);
        }
        let mut slot = self.lists.slots[kind as usize].lock().await;
        let epoch = self.lists.epochs[kind as usize].load(Ordering::SeqCst);
        let caller = self.caller();
        if let Some(at) = slot.iter().position(|kept| kept.caller == caller) {
            let kept = slot.remove(at);
            let is_fresh = kept.epoch == epoch && kept.until.is_none_or(|until| Instant::now() < until);
            if is_fresh && !refresh {
                let entries = kept.entries.clone();
                slot.push(kept);
                return Ok(entries);
            }
        }
        let (entries, bytes, ttl) = self.fetch_entries(&connection, kind, options).await?;
        let until = match ttl {
            Some(ttl) => Some(Instant::now() + ttl),
            None if reports_changes(&connection, kind) => None,
            None => Some(Instant::now()),
        };
        // the caller may have changed in between, and the list may be the new one's
        if self.caller() == caller {
            let kept = |slot: &[KeptList]| slot.iter().map(|kept| kept.bytes).sum::<usize>();
            let limit = self.options.limits.list_bytes;
            while slot.len() == MAX_CALLERS || (!slot.is_empty() && kept(&slot) + bytes > limit) {
                slot.remove(0);
            }
            slot.push(KeptList { caller, entries: entries.clone(), bytes, until, epoch });
        }
        Ok(entries)
    }

    /// The entries of all pages, their bytes and how long they may be kept.
    async fn fetch_entries(
        &self,
        connection: &Connection,
        kind: ListedKind,
        options: &CallOptions,
    ) -> Result<(Vec<Arc<Value>>, usize, Option<Duration>), Error> {
        let mut pages = self.fetch(kind, options).await?;
        self.report_left_out(kind, "it cannot be read", std::mem::take(&mut pages.dropped));
        let mut entries: Vec<_> = pages.entries.into_iter().map(Arc::new).collect();
        if kind == ListedKind::Tools {
            self.learn_tools(connection, &mut entries);
        }
        Ok((entries, pages.bytes, pages.ttl))
    }

    /// All pages.
    async fn fetch(&self, kind: ListedKind, options: &CallOptions) -> Result<ListPages, Error> {
        let limits = &self.options.limits;
        let bounds =
            ListBounds { bytes: limits.list_bytes, entries: limits.list_entries, pages: limits.list_pages };
        let mut pages = ListPages::new(kind, bounds);
        loop {
            let json = self.request(kind.method(), pages.params().into(), options).await?.json;
            let taken = run_by_size(json.len(), move || {
                let is_last = pages.take(&json);
                (pages, is_last)
            });
            let (taken, is_last) = taken.await?;
            pages = taken;
            let is_last = is_last.map_err(|error| match error {
                PageError::Invalid(what) => Error::Invalid { what },
                PageError::TooLarge(limit) => Error::too_large(limit, Some("list_bytes")),
                PageError::TooMany { what, option } => Error::TooMany { what, option },
            })?;
            if is_last {
                return Ok(pages);
            }
        }
    }

    /// Reports entries that are not in the list, by name and reason.
    fn report_left_out(&self, kind: ListedKind, why: &str, entries: Vec<(String, String)>) {
        let method = kind.method();
        for (name, reason) in entries.iter().take(MAX_LOGGED) {
            tracing::warn!(name = %in_one_line(name), reason, "an entry of `{method}` was left out: {why}");
        }
        if let Some(more) = entries.len().checked_sub(MAX_LOGGED).filter(|more| *more > 0) {
            tracing::warn!(more, "other entries of `{method}` were left out as well");
        }
        if kind == ListedKind::Tools {
            for (name, reason) in entries {
                self.inbox.handlers.notify_change(ChangeEvent::ToolDropped { name, reason });
            }
        }
    }

    /// Remembers tools for calls. Those that HTTP clients must not call are removed.
    fn learn_tools(&self, connection: &Connection, entries: &mut Vec<Arc<Value>>) {
        let infos: Vec<_> = entries.iter().cloned().filter_map(ToolInfo::new).collect();
        let invalid = self.tools.replace(&infos);
        if !connection.revision.is_modern() || !connection.link.is_http() {
            return;
        }
        let names: HashSet<&str> = invalid.iter().map(|(name, _)| name.as_str()).collect();
        let name_of = |entry: &Value| entry.get("name").and_then(Value::as_str).map(str::to_owned);
        entries.retain(|entry| !name_of(entry).is_some_and(|name| names.contains(&*name)));
        self.report_left_out(ListedKind::Tools, "HTTP clients must not call it", invalid);
    }
}

/// Whether the server says when this list changes, over a connection on which it can.
fn reports_changes(connection: &Connection, kind: ListedKind) -> bool {
    let declared = connection.server.declares(&format!("{}.listChanged", kind.capability()));
    let can_hear = matches!(&*connection.link, ServerLink::Stream(_)) && !connection.revision.is_modern();
    declared && can_hear
}

/// Checks that the server declares a capability or an extension.
pub(in crate::client) fn require(connection: &Connection, capability: &str) -> Result<(), Error> {
    if connection.server.declares(capability) {
        return Ok(());
    }
    Err(Error::unsupported(format!("`{capability}`")))
}
