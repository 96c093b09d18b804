//! Collects what a server offers and how it behaves, and checks all of it at once.

use std::{
    any::{Any, TypeId},
    collections::HashSet,
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{Error, Identity, Result, Server, ServerHandle, ServerInner, item::BuilderItem};
use crate::{
    config::{LONGEST, Options},
    context::Settings,
    crypto::{Key, KeyRing, Seal},
    events::Hub,
    extensions::Extensions,
    item::{BuildError, Location},
    prompt::Prompt,
    resource::Resource,
    server::{ItemSource, Service, assemble, item::AnnotatedItem},
    skill::{SkillCatalog, SkillsDir},
    store::SingleUse,
    sync::{Mutex, RwLock},
    task::Tasks,
    tool::{RuntimeTool, Tool},
};

/// Sets the state of calls apart from everything else that is sealed.
const STATE: &str = "mcp-runtime call state 1";
/// The same for cursors.
const CURSOR: &str = "mcp-runtime list cursor 1";

/// Reads one type from the transport's own request extensions.
type Extract = Arc<dyn Fn(&dyn Any, &mut Extensions) + Send + Sync>;

/// A type that HTTP middleware puts into requests: how to move it into a request's slots.
#[derive(Clone)]
pub(crate) struct RequestType {
    pub(crate) id: TypeId,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has middleware"))]
    pub(crate) extract: Extract,
}

/// Collects what a server offers; `server!()` starts one.
///
/// ```
/// use mcp_runtime::prelude::*;
///
/// /// Adds two numbers.
/// #[mcp_tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!().tool::<add>().instructions("Sums.").build()?;
/// assert_eq!(server.instructions(), Some("Sums."));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing before `.run()` or `.build()`"]
pub struct ServerBuilder {
    pub(super) identity: Identity,
    module: &'static str,
    pub(crate) options: Options,
    settings: Settings,
    pub(crate) state: Extensions,
    pub(crate) request_types: Vec<RequestType>,
    items: Vec<BuilderItem>,
    skills_dirs: Vec<SkillsDir>,
    problems: Vec<BuildError>,
    require_docs: bool,
    pub(super) handed: Vec<Handed>,
    layers: Option<Arc<dyn Any + Send + Sync>>,
}

/// Types that the server itself lets functions take.
pub(super) fn own() -> [TypeId; 1] {
    [TypeId::of::<ServerHandle>()]
}

/// Takes the server's handle.
pub(super) type Handed = Box<dyn FnOnce(ServerHandle) + Send>;

impl ServerBuilder {
    #[doc(hidden)]
    pub fn new(name: impl Into<String>, version: impl Into<String>, module: &'static str) -> Self {
        Self {
            identity: Identity::new(name.into(), version.into()),
            module,
            options: Options::default(),
            settings: Settings::default(),
            state: Extensions::default(),
            request_types: Vec::new(),
            items: Vec::new(),
            skills_dirs: Vec::new(),
            problems: Vec::new(),
            require_docs: false,
            handed: Vec::new(),
            layers: None,
        }
    }

    /// Offers every annotated function of the crate that called `server!()`.
    pub fn discover(self) -> Self {
        let module = self.module;
        let own = module.split("::").next().unwrap_or(module);
        self.discover_where(|at| at.krate() == own)
    }

    /// Offers every annotated function of these crates, which must be linked (`use tools as _;`).
    pub fn discover_from<'a>(mut self, crates: impl IntoIterator<Item = &'a str>) -> Self {
        for name in crates {
            let name = name.replace('-', "_");
            let before = self.items.len();
            self = self.discover_where(|at| at.krate() == name);
            if self.items.len() == before {
                self.problems.push(BuildError::new(format!(
                    "no annotated function of a crate `{name}` is linked\nadd `use {name} as _;` to the program"
                )));
            }
        }
        self
    }

    /// Offers every annotated function of a module and those inside it: `.discover_in(module_path!())`.
    pub fn discover_in(self, module: &str) -> Self {
        let inside = format!("{module}::");
        self.discover_where(|at| at.module == module || at.module.starts_with(&inside))
    }

    fn discover_where(mut self, wanted: impl Fn(&Location) -> bool) -> Self {
        let taken: HashSet<usize> = self.items.iter().filter_map(BuilderItem::key).collect();
        for item in AnnotatedItem::all() {
            // discovering twice, or discovering what was named, is no second registration
            if wanted(&item.descriptor().location) && !taken.contains(&item.key()) {
                self.push(ItemSource::Annotated(item));
            }
        }
        self
    }

    fn push(&mut self, source: ItemSource) {
        if let ItemSource::Annotated(item) = &source {
            named().lock().insert(item.key());
        }
        self.items.push(BuilderItem::new(source));
    }

    /// Offers one annotated tool.
    pub fn tool<T: Tool>(mut self) -> Self {
        self.push(ItemSource::Annotated(AnnotatedItem::Tool(T::DESCRIPTOR)));
        self
    }

    /// Offers one annotated resource or template.
    pub fn resource<T: Resource>(mut self) -> Self {
        self.push(ItemSource::Annotated(AnnotatedItem::Resource(T::DESCRIPTOR)));
        self
    }

    /// Offers one annotated prompt.
    pub fn prompt<T: Prompt>(mut self) -> Self {
        self.push(ItemSource::Annotated(AnnotatedItem::Prompt(T::DESCRIPTOR)));
        self
    }

    /// Offers the annotated methods of a service.
    pub fn service<S: Service>(self, service: S) -> Self {
        self.add_service(service, "")
    }

    /// Offers the annotated methods of a service under a prefix: tools and prompts as `prefix_name`, resources as
    /// `scheme://prefix/…`.
    pub fn service_as<S: Service>(self, prefix: &str, service: S) -> Self {
        self.add_service(service, prefix)
    }

    fn add_service<S: Service>(mut self, service: S, prefix: &str) -> Self {
        let service = Arc::new(service);
        for item in S::ITEMS {
            self.push(ItemSource::Annotated(*item));
            if let Some(item) = self.items.last_mut() {
                item.belong_to(&service, prefix);
            }
        }
        self
    }

    /// Offers a tool made at run time.
    pub fn add_tool(mut self, tool: RuntimeTool) -> Self {
        self.push(ItemSource::Runtime(Arc::new(tool)));
        self
    }

    /// Offers the skills in a directory: each directory in it that holds a `SKILL.md`, and the files of each.
    ///
    /// A relative path starts at the working directory. The files are read once, by [`build`](Self::build), which
    /// refuses what the extension does not allow; what changes later is not seen. Called again, it adds another
    /// directory. Clients of 2026-07-28 find the skills with `skills/list`, and read `skill://<name>/<path>`.
    ///
    /// Needs the feature `skills`. See the
    /// [extension](https://github.com/modelcontextprotocol/experimental-ext-skills).
    #[cfg(feature = "skills")]
    pub fn skills(mut self, directory: impl Into<std::path::PathBuf>) -> Self {
        self.skills_dirs.push(SkillsDir { path: directory.into(), prefix: String::new() });
        self
    }

    /// Offers everything of another builder under a prefix, with the other builder's state.
    ///
    /// Tools and prompts become `prefix_name`, resources and skills `scheme://prefix/…`; an empty prefix changes no
    /// name. Its identity and options are left behind.
    pub fn mount(mut self, prefix: &str, other: Self) -> Self {
        let joined = |inner: &str| match (prefix.is_empty(), inner.is_empty()) {
            (true, _) => inner.to_owned(),
            (_, true) => prefix.to_owned(),
            _ => format!("{prefix}_{inner}"),
        };
        self.problems.extend(other.problems);
        let state = Arc::new(other.state);
        let requested: Arc<[TypeId]> = other.request_types.iter().map(|t| t.id).collect();
        for item in other.items {
            let mut item = item.registered(&state, &requested);
            item.prefix = joined(&item.prefix);
            self.items.push(BuilderItem::Mounted(item));
        }
        self.skills_dirs.extend(other.skills_dirs.into_iter().map(|mut dir| {
            dir.prefix = joined(&dir.prefix);
            dir
        }));
        self.request_types.extend(other.request_types);
        self.handed.extend(other.handed);
        self
    }

    /// Registers state that functions take as `&T`; `Arc<T>` serves `&T`, `Arc<dyn Trait>` serves `&dyn Trait`.
    pub fn state<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Sets the keys that session ids and the state of unfinished calls are sealed with, so that replicas and
    /// restarts open each other's.
    ///
    /// The first key seals, every key opens: to replace one, put the new key in front. Without this [`run`](Self::run) takes
    /// them [from the environment](Self::keys_from_env); otherwise there is one random key.
    pub fn keys(mut self, keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let keys: Vec<_> = keys.into_iter().map(Key::new).collect();
        if keys.is_empty() {
            self.problems.push(BuildError::new("`.keys(..)` got no key\ngive it at least one".into()));
        }
        self.options.keys = Some(KeyRing::new(keys));
        self
    }

    /// Sets the [keys](Self::keys) to those in the environment variable `MCP_SERVER_KEYS`, if it is set.
    ///
    /// A key is 64 hexadecimal digits, or 32 bytes in base64; several are separated by commas. [`run`](Self::run) does
    /// this unless keys are set; [`build`](Self::build) does not read the environment.
    pub fn keys_from_env(mut self) -> Self {
        match KeyRing::from_environment() {
            Ok(Some(keys)) => self.options.keys = Some(keys),
            Ok(None) => {}
            Err(problem) => {
                self.problems.push(BuildError::new(problem));
                self.options.keys = Some(KeyRing::new(Vec::new()));
            }
        }
        self
    }

    /// Sets how long a client of the handshake era may take to answer when a function asks it; 5 minutes by default.
    pub fn ask_timeout(mut self, limit: Duration) -> Self {
        self.settings.ask_timeout = limit;
        self
    }

    /// Sets where it is remembered which calls have [used their answers](crate::Context::consume_once); in this
    /// process's memory by default, for up to 10 000 calls at a time.
    pub fn single_use(mut self, store: impl SingleUse + 'static) -> Self {
        self.settings.single_use = Box::new(store);
        self
    }

    /// Lets functions send log messages to clients with [`Context::log`](crate::Context::log), and declares that: the
    /// wire's `logging` capability.
    ///
    /// The specification deprecates logging to clients from 2026-07-28 on, in favour of stderr and OpenTelemetry.
    pub fn logging(mut self) -> Self {
        self.settings.logging = true;
        self
    }

    /// Lets [`run`](Self::run) send the `tracing` events of a call to its client, if that has asked for log messages;
    /// switches [`logging`](Self::logging) on.
    ///
    /// Every event at level `DEBUG` or above that is recorded while a thread works for the call is sent, whichever crate it
    /// comes from, except those of `mcp_runtime` itself: see to it that no secret is in them. This is for programs
    /// without a `tracing` subscriber of their own; add `client_layer()` (feature `tracing`) to one's own.
    pub fn forward_events(mut self) -> Self {
        self.options.forward_events = true;
        self.logging()
    }

    /// Shows the cause of every failure to the client; for trusted deployments.
    pub fn detailed_errors(mut self, show: bool) -> Self {
        self.options.detailed_errors = show;
        self
    }

    /// Refuses to build with an item that has no description.
    pub fn require_descriptions(mut self) -> Self {
        self.require_docs = true;
        self
    }

    /// Sets how many entries a page of a list has; 1000 by default.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.options.page_size = entries.max(1);
        self
    }

    /// Sets how long clients of the stateless era may keep lists: the wire's `ttlMs`; not at all by default.
    pub fn list_ttl(mut self, ttl: Duration) -> Self {
        self.options.list_ttl = ttl;
        self
    }

    /// Sets how many bytes a line on stdio may have; 4 MiB by default.
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.options.max_line = bytes;
        self
    }

    /// Sets how many calls may run at once on one connection; 256 by default.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.options.max_in_flight = calls.max(1);
        self
    }

    /// Sets how many requests may wait for a place among the running ones; 1024 by default.
    pub fn max_queued(mut self, requests: usize) -> Self {
        self.options.max_queued = requests;
        self
    }

    /// Sets how many bytes of such requests may wait on one connection; 16 MiB by default. More are refused as busy.
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.options.max_queued_bytes = bytes;
        self
    }

    /// Sets how long calls may go on after the input has ended or the process was told to stop, a year at most; by
    /// default 2 s on stdio, where the official clients end a server soon after that, and 10 s elsewhere.
    pub fn drain(mut self, limit: Duration) -> Self {
        self.options.drain = Some(limit.min(LONGEST));
        self
    }

    /// Sets how long a client may take nothing of what is written to it before its connection is closed, over HTTP and
    /// on byte streams; 30 s by default, a year at most.
    ///
    /// On stdio the server waits for the host, however long that takes.
    pub fn write_timeout(mut self, limit: Duration) -> Self {
        self.options.write_timeout = limit.min(LONGEST);
        self
    }

    /// Puts something around every call.
    #[cfg(test)]
    pub(crate) fn layers<T: Any + Send + Sync>(mut self, layers: T) -> Self {
        self.layers = Some(Arc::new(layers));
        self
    }

    /// Checks everything and makes the server.
    ///
    /// # Errors
    /// Every duplicate name or URI, with both places; every injected type without state; every schema that cannot be
    /// enforced; every file of a skill that cannot be served.
    pub fn build(self) -> Result<Server> {
        let state = Arc::new(self.state);
        let requested: Arc<[TypeId]> = self.request_types.iter().map(|t| t.id).collect();
        let items: Vec<_> = self.items.into_iter().map(|item| item.registered(&state, &requested)).collect();
        let mut problems = self.problems;
        problems.extend(self.identity.problem());
        let options = self.options;
        #[cfg(feature = "http")]
        problems.extend(options.http.check().into_iter().map(BuildError::new));
        let keys = match options.keys.clone().map_or_else(KeyRing::random, Ok) {
            Ok(keys) => keys,
            Err(problem) => {
                problems.push(BuildError::new(problem));
                KeyRing::new(Vec::new())
            }
        };
        let skills = Arc::new(SkillCatalog::read(&self.skills_dirs, &mut problems));
        let registry = match assemble(&self.identity.name, &items, &skills, &own(), self.require_docs) {
            Ok(registry) => registry,
            Err(found) => {
                problems.extend(found);
                return Err(report(&problems));
            }
        };
        if !problems.is_empty() {
            return Err(report(&problems));
        }
        let mut identity = self.identity;
        identity.render();
        let wanted = items.iter().any(|item| item.takes::<ServerHandle>());
        let handled = wanted || !self.handed.is_empty();
        let mut settings = self.settings;
        let hub = Hub::new(options.subscriptions);
        let server = Server(Arc::new_cyclic(|this: &Weak<ServerInner>| {
            if handled {
                // no cycle: it does not keep the server alive
                settings.server_values.insert(ServerHandle::new(this.clone()));
            }
            ServerInner {
                identity: Arc::new(identity),
                layers: self.layers,
                settings: Arc::new(settings),
                states: Seal::new(&keys, STATE),
                cursors: Seal::new(&keys, CURSOR),
                keys,
                request_types: self.request_types,
                require_docs: self.require_docs,
                items: RwLock::new(items),
                registry: RwLock::new(Arc::new(registry)),
                tasks: Tasks::new(options.tasks.clone(), hub.clone()),
                hub,
                handled: AtomicBool::new(handled),
                without_callers: AtomicBool::new(false),
                options,
            }
        }));
        for take in self.handed {
            take(ServerHandle::new(Arc::downgrade(&server.0)));
        }
        Ok(server)
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.identity.name).finish_non_exhaustive()
    }
}

/// All problems as one error.
pub(super) fn report(problems: &[BuildError]) -> Error {
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Error::build(format!("the server cannot be built:\n{}", list.join("\n")))
}

/// Items that some builder of the process has named.
fn named() -> &'static Mutex<HashSet<usize>> {
    static NAMED: OnceLock<Mutex<HashSet<usize>>> = OnceLock::new();
    NAMED.get_or_init(Mutex::default)
}

/// Annotated items that no builder has named; logged once, when the first server of the process starts.
pub(crate) fn report_forgotten() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    for (name, at) in forgotten() {
        tracing::warn!(
            "`{name}` at {at} is annotated, but no server offers it; register it, or mark it `unlisted`"
        );
    }
}

/// Name and place of every annotated item that no builder of the process has named so far.
fn forgotten() -> Vec<(&'static str, Location)> {
    let named = named().lock();
    let left = AnnotatedItem::all()
        .into_iter()
        .filter(|item| !named.contains(&item.key()))
        .map(|item| item.descriptor());
    left.filter(|common| !common.unlisted).map(|common| (common.name, common.location)).collect()
}
