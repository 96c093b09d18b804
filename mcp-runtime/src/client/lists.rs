//! Lists of a server: all pages, kept as long as the server allows or until it reports a change.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Duration, Instant};

use super::{
    Error,
    core::{CallOptions, Connection, Core, ServerLink},
    handlers::ChangeEvent,
    inbox::Stale,
    listed_items::ToolInfo,
    result_types::parse,
};

/// Bounds of one list, of a server that does not end it.
const MAX_PAGES: usize = 1000;
const MAX_ENTRIES: usize = 100_000;

/// A list that servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListedKind {
    const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    pub(super) const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// The lists that are kept.
#[derive(Default)]
pub(super) struct ListCaches {
    /// One flight for each list.
    slots: [tokio::sync::Mutex<Option<KeptList>>; 4],
    /// Count the changes that the server has reported.
    epochs: [AtomicU64; 4],
}

struct KeptList {
    entries: Vec<Value>,
    /// `None`: until the server reports a change.
    until: Option<Instant>,
    epoch: u64,
}

impl ListCaches {
    pub(super) fn invalidate(&self, stale: Stale<'_>) {
        match stale {
            Stale::Tools => self.next_epoch(ListedKind::Tools),
            Stale::Prompts => self.next_epoch(ListedKind::Prompts),
            Stale::Resources => {
                self.next_epoch(ListedKind::Resources);
                self.next_epoch(ListedKind::Templates);
            }
            Stale::Resource(_) => {}
        }
    }

    pub(super) fn invalidate_all(&self) {
        for stale in [Stale::Tools, Stale::Prompts, Stale::Resources] {
            self.invalidate(stale);
        }
    }

    fn next_epoch(&self, kind: ListedKind) {
        self.epochs[kind as usize].fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Deserialize)]
struct ListPage {
    #[serde(rename = "nextCursor")]
    next_cursor: Option<Value>,
    #[serde(rename = "ttlMs")]
    ttl_ms: Option<f64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Core {
    /// The entries of a list; from the server if `refresh`, or if what is kept may be stale.
    pub(super) async fn list(
        &self,
        kind: ListedKind,
        refresh: bool,
        options: &CallOptions,
    ) -> Result<Vec<Value>, Error> {
        let connection = self.connection()?;
        require(&connection, kind.capability())?;
        let mut slot = self.lists.slots[kind as usize].lock().await;
        let epoch = self.lists.epochs[kind as usize].load(Ordering::SeqCst);
        if let Some(kept) = slot.as_ref().filter(|kept| kept.epoch == epoch && !refresh)
            && kept.until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(kept.entries.clone());
        }
        let (mut entries, ttl) = self.fetch(kind, options).await?;
        if kind == ListedKind::Tools {
            self.learn_tools(&connection, &mut entries);
        }
        let until = match ttl {
            Some(ttl) => Some(Instant::now() + ttl),
            None if reports_changes(&connection, kind) => None,
            None => Some(Instant::now()),
        };
        *slot = Some(KeptList { entries: entries.clone(), until, epoch });
        Ok(entries)
    }

    /// All pages, and the shortest time that one of them may be kept.
    async fn fetch(
        &self,
        kind: ListedKind,
        options: &CallOptions,
    ) -> Result<(Vec<Value>, Option<Duration>), Error> {
        let mut entries = Vec::new();
        let mut ttl = None::<Duration>;
        let mut cursor = Value::Null;
        for _ in 0..MAX_PAGES {
            let mut members = Map::new();
            if !cursor.is_null() {
                members.insert("cursor".to_owned(), cursor.clone());
            }
            let json = self.request(kind.method(), members.into(), options).await?;
            let mut page: ListPage = parse(&json, kind.method())?;
            let Some(Value::Array(mut page_entries)) = page.rest.remove(kind.member()) else {
                return Err(Error::invalid(format!(
                    "the result of `{}` has no `{}`",
                    kind.method(),
                    kind.member()
                )));
            };
            entries.append(&mut page_entries);
            if let Some(millis) = page.ttl_ms {
                // at most a year, so that its end can be computed
                let page_ttl = Duration::from_millis(millis.clamp(0.0, 3.2e10) as u64);
                ttl = Some(ttl.map_or(page_ttl, |ttl| ttl.min(page_ttl)));
            }
            match page.next_cursor {
                None | Some(Value::Null) => return Ok((entries, ttl)),
                Some(next) if next == cursor => {
                    return Err(Error::invalid(format!("`{}` repeats the cursor {next}", kind.method())));
                }
                Some(next) => cursor = next,
            }
            if entries.len() > MAX_ENTRIES {
                break;
            }
        }
        Err(Error::invalid(format!(
            "`{}` has more than {MAX_ENTRIES} entries or {MAX_PAGES} pages",
            kind.method()
        )))
    }

    /// Remembers tools for calls. Those that HTTP clients must not call are removed.
    fn learn_tools(&self, connection: &Connection, entries: &mut Vec<Value>) {
        let infos: Vec<_> = entries.iter().cloned().filter_map(ToolInfo::new).collect();
        let invalid = self.tools.replace(&infos);
        if !connection.revision.is_modern() || !connection.link.is_http() {
            return;
        }
        for (name, reason) in invalid {
            tracing::warn!(
                tool = name,
                reason,
                "a tool was left out of the list: HTTP clients must not call it"
            );
            entries.retain(|entry| entry.get("name").and_then(Value::as_str) != Some(&name));
            self.inbox.handlers.notify_change(ChangeEvent::ToolDropped { name, reason });
        }
    }
}

/// Whether the server says when this list changes, over a connection on which it can.
fn reports_changes(connection: &Connection, kind: ListedKind) -> bool {
    let declared = connection.server.capabilities.get(kind.capability()).and_then(|c| c.get("listChanged"));
    let can_hear = matches!(&*connection.link, ServerLink::Lines(_)) && !connection.revision.is_modern();
    declared == Some(&json!(true)) && can_hear
}

/// Checks that the server declares a capability.
pub(super) fn require(connection: &Connection, capability: &str) -> Result<(), Error> {
    match connection.server.capabilities.get(capability) {
        Some(Value::Object(_)) => Ok(()),
        _ => Err(Error::unsupported(format!("`{capability}`"))),
    }
}
