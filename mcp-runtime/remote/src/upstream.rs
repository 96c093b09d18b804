//! The connection to another server: opened when it is needed, and again after a loss, with a pause that grows. What was
//! listed stays offered while the server is away; calls fail at once then, and the log says once that it is away, and once
//! that it is back.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use http::HeaderValue;
use mcp_runtime::{
    Context, ToolError,
    addition::{AddedItems, ItemEdits, ItemKind, RefusedItem},
    client::{ChangeEvent, Client, Error, PromptInfo, ResourceInfo, TemplateInfo, ToolInfo},
    permits::{CallerPermit, CallerPermits},
};
use serde_json::Value;
use tokio::{
    sync::{Mutex, Notify},
    time::{Instant, sleep, timeout},
};

use crate::{
    callers::Callers,
    definition::Definition,
    pinned::Pinned,
    remote::{Limits, Names},
    target::Target,
};

/// The pause after the first failure, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that was lost sooner counts as a failure.
const STABLE: Duration = Duration::from_secs(10);
/// How often the end of a process is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// How often lists are read of which the server does not say that they change; the client keeps them as long as it may.
const REREAD: Duration = Duration::from_secs(60);
/// The longest excerpt of what a process wrote to stderr before it ended, in characters.
const MAX_EXCERPT: usize = 2000;

/// The lists of a server, as flags.
const TOOLS: u8 = 1;
const PROMPTS: u8 = 2;
const RESOURCES: u8 = 4;
const ALL: u8 = TOOLS | PROMPTS | RESOURCES;
/// How far the flag of a list is shifted that the server says has changed: its notice is passed on.
const NOTICED: u8 = 4;

/// Another server that is a part of this one.
pub(crate) struct Upstream {
    pub(crate) names: Names,
    pub(crate) target: Target,
    limits: Limits,
    permits: CallerPermits,
    /// Counts requests; a clone for each that runs.
    uses: Arc<AtomicU64>,
    /// Whether the last attempt to connect has succeeded, and the connection was not lost since.
    is_reached: AtomicBool,
    items: OnceLock<AddedItems>,
    /// The connection of the program.
    own: Arc<Slot>,
    /// Those of callers, if these have credentials.
    callers: Option<Callers>,
    /// The tools that may be offered.
    pinned: Option<Pinned>,
    /// Lists that have changed.
    changed: AtomicU8,
    wake: Notify,
}

/// The place of a connection, with the credential that it has.
#[derive(Default)]
pub(crate) struct Slot {
    connection: Mutex<Connection>,
    /// That of a caller.
    credential: Option<HeaderValue>,
}

impl Slot {
    pub(crate) fn of_caller(credential: HeaderValue) -> Self {
        Self { credential: Some(credential), ..Self::default() }
    }
}

#[derive(Default)]
struct Connection {
    client: Option<Client>,
    opened: Option<Instant>,
    failures: u32,
    /// Until then no connection is tried.
    retry: Option<Instant>,
    /// Whether the log says that it is away.
    is_away: bool,
    /// Whether it has ended because it was idle.
    rests: bool,
    /// Counts the connections.
    number: u64,
}

/// A connection, by its number.
pub(crate) struct Link {
    pub(crate) client: Client,
    number: u64,
    slot: Arc<Slot>,
}

impl Link {
    /// Whether it has the credential of a caller.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.slot.credential.is_some()
    }
}

/// The other server cannot be reached.
#[derive(Debug)]
pub(crate) struct Away(String);

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be reached", self.0)
    }
}

/// The entries of lists as they were read; `None`: not read.
#[derive(Default)]
struct Lists {
    tools: Option<Vec<ToolInfo>>,
    prompts: Option<Vec<PromptInfo>>,
    resources: Option<(Vec<ResourceInfo>, Vec<TemplateInfo>)>,
}

impl Lists {
    /// Whether a list was read in both, with the same entries.
    fn has_same(&self, list: u8, other: &Self) -> bool {
        match list {
            TOOLS => self.tools.is_some() && self.tools == other.tools,
            PROMPTS => self.prompts.is_some() && self.prompts == other.prompts,
            _ => self.resources.is_some() && self.resources == other.resources,
        }
    }
}

/// What is offered of the lists.
#[derive(Default)]
struct Offered {
    lists: Lists,
    /// URIs that are left out.
    refused: HashSet<String>,
    /// Items of which the log says that they are left out.
    reported: HashSet<(ItemKind, String)>,
}

impl Upstream {
    pub(crate) fn new(
        names: Names,
        target: Target,
        limits: Limits,
        callers: Option<Callers>,
        pinned: Option<Pinned>,
    ) -> Arc<Self> {
        Arc::new(Self {
            names,
            target,
            permits: CallerPermits::new(limits.concurrency),
            limits,
            uses: Arc::default(),
            is_reached: AtomicBool::new(false),
            items: OnceLock::new(),
            own: Arc::default(),
            callers,
            pinned,
            changed: AtomicU8::new(ALL),
            wake: Notify::new(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.names.remote
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.limits.timeout
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Acquire)
    }

    /// Counts a request, which runs until this is dropped.
    pub(crate) fn used(&self) -> Arc<AtomicU64> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        self.uses.clone()
    }

    /// The prefix of the mounts of this server's items.
    pub(crate) fn prefix(&self) -> &str {
        self.items.get().map_or("", |items| items.prefix())
    }

    /// Room for one more request of this caller: further ones wait, as long as a request may take.
    pub(crate) async fn permit(&self, context: &Context) -> Result<CallerPermit, ToolError> {
        let permit = timeout(self.limits.timeout, self.permits.acquire(context)).await;
        permit.map_err(|_| ToolError::new(format!("`{}` is busy; try again later", self.name())))
    }

    /// The connection for a call: that of its caller if the program says how callers are known, and else its own.
    pub(crate) async fn link_for(self: &Arc<Self>, context: &Context) -> Result<Link, ToolError> {
        let slot = match &self.callers {
            Some(callers) => callers.slot(self.name(), context).await?,
            None => self.own.clone(),
        };
        self.link(slot).await.map_err(|away| ToolError::new(away.to_string()))
    }

    /// A connection: the one there is, or a new one, unless the last attempt has just failed.
    async fn link(self: &Arc<Self>, slot: Arc<Slot>) -> Result<Link, Away> {
        let away = || Away(self.name().to_owned());
        let mut connection = slot.connection.lock().await;
        if let Some(client) = &connection.client {
            if !client.is_closed() {
                let (client, number) = (client.clone(), connection.number);
                drop(connection);
                return Ok(Link { client, number, slot });
            }
            let ended = client.stderr();
            connection.lose();
            self.report_away(&slot, &mut connection, &format!("its process has ended {}", excerpt(&ended)));
        }
        if connection.retry.is_some_and(|retry| Instant::now() < retry) {
            return Err(away());
        }
        let items = self.items.get().ok_or_else(away)?;
        connection.rests = false;
        if let Some(program) = self.target.program() {
            tracing::info!(remote = self.name(), program, "a process is started");
        }
        let listener = Arc::downgrade(self);
        let on_change = move |event| {
            if let Some(upstream) = listener.upgrade() {
                upstream.note(&event);
            }
        };
        match self.target.connect(self.name(), items, slot.credential.as_ref(), on_change).await {
            Ok(client) => {
                connection.opened = Some(Instant::now());
                connection.retry = None;
                connection.number += 1;
                connection.client = Some(client.clone());
                if std::mem::take(&mut connection.is_away) {
                    tracing::info!(remote = self.name(), "it is back");
                }
                if slot.credential.is_none() {
                    self.is_reached.store(true, Ordering::Release);
                    self.mark(ALL);
                }
                let number = connection.number;
                drop(connection);
                Ok(Link { client, number, slot })
            }
            Err(error) => {
                connection.fail();
                self.report_away(&slot, &mut connection, &error);
                Err(away())
            }
        }
    }

    fn report_away(&self, slot: &Slot, connection: &mut Connection, error: &str) {
        if slot.credential.is_none() {
            self.is_reached.store(false, Ordering::Release);
        }
        if !std::mem::replace(&mut connection.is_away, true) {
            let error = excerpt(error);
            tracing::warn!(remote = self.name(), error, "it cannot be reached; it is tried again");
        }
    }

    /// Gives up a connection over which a request has failed.
    pub(crate) fn lost(&self, link: &Link, error: &Error) {
        // another call is connecting, or has lost it as well
        let Ok(mut connection) = link.slot.connection.try_lock() else { return };
        if connection.client.is_some() && connection.number == link.number {
            connection.lose();
            self.report_away(&link.slot, &mut connection, &error.to_string());
            drop(connection);
            self.wake.notify_one();
        }
    }

    fn mark(&self, lists: u8) {
        self.changed.fetch_or(lists, Ordering::AcqRel);
        self.wake.notify_one();
    }

    fn note(&self, event: &ChangeEvent) {
        match event {
            ChangeEvent::Tools => self.mark(TOOLS | TOOLS << NOTICED),
            ChangeEvent::Prompts => self.mark(PROMPTS | PROMPTS << NOTICED),
            ChangeEvent::Resources => self.mark(RESOURCES | RESOURCES << NOTICED),
            ChangeEvent::Restored => self.mark(ALL),
            ChangeEvent::ToolDropped { name, reason } => {
                let (tool, reason) = (excerpt(name), excerpt(reason));
                tracing::warn!(remote = self.name(), tool, reason, "a tool is left out");
            }
            _ => {}
        }
    }

    /// Keeps the items of this server equal to the lists of the other one, until this server ends.
    pub(crate) async fn follow(self: Arc<Self>, items: AddedItems) {
        let items = self.items.get_or_init(|| items);
        if !self.limits.is_required {
            items.wanted().await;
        }
        let mut offered = Offered::default();
        let mut idle = (self.uses.load(Ordering::Relaxed), Instant::now());
        loop {
            let wait = match self.link(self.own.clone()).await {
                Ok(link) => {
                    let changed = self.changed.swap(0, Ordering::AcqRel);
                    let (lists, failed) = self.read(&link, changed).await;
                    self.offer(items, &link.client, lists, changed >> NOTICED, &mut offered);
                    // read again later
                    self.changed.fetch_or(failed, Ordering::AcqRel);
                    if failed == 0 { LOOK } else { FIRST_PAUSE * 5 }
                }
                Err(_) => {
                    let retry = self.own.connection.lock().await.retry;
                    retry.map_or(LOOK, |retry| retry.saturating_duration_since(Instant::now()))
                }
            };
            items.arrived();
            self.wait(wait, &mut idle).await;
        }
    }

    /// Waits for a reason to read lists again, and ends the connection if it is idle: since then, with that many requests.
    async fn wait(&self, at_least: Duration, idle: &mut (u64, Instant)) {
        let begun = Instant::now();
        loop {
            let _is_over = timeout(at_least.max(LOOK), self.wake.notified()).await;
            if let Some(callers) = &self.callers {
                callers.end_idle();
            }
            let uses = self.uses.load(Ordering::Relaxed);
            if uses != idle.0 || Arc::strong_count(&self.uses) > 1 {
                *idle = (uses, Instant::now());
            }
            let is_closed = {
                let mut connection = self.own.connection.lock().await;
                if self.limits.idle.is_some_and(|limit| idle.1.elapsed() >= limit) {
                    connection.rest();
                }
                if connection.rests {
                    // a request opens it again
                    continue;
                }
                connection.client.as_ref().is_none_or(Client::is_closed)
            };
            if is_closed || self.changed.load(Ordering::Acquire) != 0 {
                sleep(at_least.saturating_sub(begun.elapsed())).await;
                return;
            }
            if begun.elapsed() > REREAD {
                self.changed.fetch_or(ALL, Ordering::AcqRel);
                return;
            }
        }
    }

    /// Reads these lists; also those that could not be read.
    async fn read(&self, link: &Link, changed: u8) -> (Lists, u8) {
        let (client, mut lists, mut failed) = (&link.client, Lists::default(), 0);
        let mut note = |flag: u8, error: Error| {
            tracing::warn!(
                remote = self.name(),
                error = excerpt(&error.to_string()),
                "a list cannot be read"
            );
            if matches!(error, Error::NotConnected { .. } | Error::Closed { .. }) {
                self.lost(link, &error);
            }
            failed |= flag;
        };
        if changed & TOOLS != 0 {
            match client.supports("tools") {
                true => lists.tools = client.tools().await.map_err(|error| note(TOOLS, error)).ok(),
                false => lists.tools = Some(Vec::new()),
            }
        }
        if changed & PROMPTS != 0 {
            match client.supports("prompts") {
                true => lists.prompts = client.prompts().await.map_err(|error| note(PROMPTS, error)).ok(),
                false => lists.prompts = Some(Vec::new()),
            }
        }
        if changed & RESOURCES != 0 {
            let read = async {
                let resources = client.resources().await?;
                // many servers have resources and no templates
                let templates = match client.templates().await {
                    Err(Error::Protocol { code: -32601, .. }) => Vec::new(),
                    templates => templates?,
                };
                Ok((resources, templates))
            };
            match client.supports("resources") {
                true => lists.resources = read.await.map_err(|error| note(RESOURCES, error)).ok(),
                false => lists.resources = Some(Default::default()),
            }
        }
        (lists, failed)
    }

    /// Offers what was read, unless it is what was offered before and the server gave no notice of a change.
    fn offer(
        self: &Arc<Self>,
        items: &AddedItems,
        client: &Client,
        mut lists: Lists,
        noticed: u8,
        offered: &mut Offered,
    ) {
        let completes = client.supports("completions");
        let is_kept = |lists: &Lists, list: u8| noticed & list == 0 && lists.has_same(list, &offered.lists);
        let kept = [TOOLS, PROMPTS, RESOURCES].map(|list| is_kept(&lists, list));
        let mut left_out: Vec<RefusedItem> = Vec::new();
        if let Some((resources, templates)) = lists.resources.take_if(|_| !kept[2]) {
            let found = self.update(items, |edits| {
                edits.clear(ItemKind::Resource);
                let exact = resources.iter().map(|resource| (resource.uri(), resource.raw()));
                let templates = templates.iter().map(|template| (template.uri_template(), template.raw()));
                for (uri, entry) in exact.chain(templates) {
                    match Definition::read(entry) {
                        Ok(definition) => edits.add(definition.resource(uri, completes, self)),
                        Err(error) => self.report(ItemKind::Resource, uri, &error, &mut offered.reported),
                    }
                }
            });
            let refused = found.iter().filter(|item| item.kind == ItemKind::Resource);
            offered.refused = refused.map(|item| item.name.clone()).collect();
            offered.lists.resources = Some((resources, templates));
            left_out.extend(found);
        }
        if let Some(prompts) = lists.prompts.take_if(|_| !kept[1]) {
            left_out.extend(self.update(items, |edits| {
                edits.clear(ItemKind::Prompt);
                for prompt in &prompts {
                    let Some(name) = self.names.shown(prompt.name()) else { continue };
                    match Definition::read(prompt.raw()) {
                        Ok(read) => edits.add(read.prompt(&name, prompt.name(), completes, self)),
                        Err(error) => self.report(ItemKind::Prompt, &name, &error, &mut offered.reported),
                    }
                }
            }));
            offered.lists.prompts = Some(prompts);
        }
        if let Some(tools) = lists.tools.take_if(|_| !kept[0]) {
            left_out.extend(self.update(items, |edits| {
                edits.clear(ItemKind::Tool);
                for tool in &tools {
                    let Some(name) = self.names.shown(tool.name()) else { continue };
                    let pinned =
                        self.pinned.as_ref().map(|pinned| pinned.check_tool(tool.name(), tool.raw()));
                    let definition = pinned.unwrap_or(Ok(()));
                    match definition.and_then(|()| definition_of_tool(tool.raw(), &offered.refused)) {
                        Ok(definition) => edits.add(definition.tool(&name, tool.name(), self)),
                        Err(error) => self.report(ItemKind::Tool, &name, &error, &mut offered.reported),
                    }
                }
            }));
            offered.lists.tools = Some(tools);
        }
        for item in left_out {
            self.report(item.kind, &item.name, &item.reason, &mut offered.reported);
        }
    }

    fn update(&self, items: &AddedItems, edit: impl FnOnce(&mut ItemEdits)) -> Vec<RefusedItem> {
        items.update(edit).unwrap_or_else(|error| {
            tracing::warn!(
                remote = self.name(),
                error = excerpt(&error.to_string()),
                "a list is not offered"
            );
            Vec::new()
        })
    }

    /// Says once why an item is left out.
    fn report(&self, kind: ItemKind, name: &str, reason: &str, reported: &mut HashSet<(ItemKind, String)>) {
        if reported.len() < 1000 && reported.insert((kind, name.to_owned())) {
            let (item, reason) = (excerpt(name), excerpt(reason));
            tracing::warn!(remote = self.name(), ?kind, item, reason, "an item is left out");
        }
    }
}

/// The definition of a tool whose page, if it has one, is offered.
fn definition_of_tool(entry: &Value, refused: &HashSet<String>) -> Result<Definition, String> {
    let definition = Definition::read(entry)?;
    match definition.page().filter(|page| refused.contains(*page)) {
        Some(page) => Err(format!("its page `{page}` is left out")),
        None => Ok(definition),
    }
}

impl Connection {
    /// Ends the connection, which may be opened again: at once if it has lasted, and otherwise after a pause.
    fn lose(&mut self) {
        self.client = None;
        match self.opened.take() {
            Some(opened) if opened.elapsed() >= STABLE => self.failures = 0,
            _ => self.fail(),
        }
    }

    /// Ends the connection until it is needed.
    fn rest(&mut self) {
        if self.client.take().is_some() {
            self.opened = None;
            self.rests = true;
        }
    }

    fn fail(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.retry = Some(Instant::now() + pause);
    }
}

/// The end of a text of others, in one line for the log.
fn excerpt(text: &str) -> String {
    let shown: Vec<char> = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown.iter().skip(shown.len().saturating_sub(MAX_EXCERPT)).collect()
}
