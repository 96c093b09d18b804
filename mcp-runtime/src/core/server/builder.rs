//! Collects the items and the options of a server, and checks all of them at once.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashSet,
    fmt,
    panic::Location as Caller,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    AddedStore, Capabilities, Error, Open, Parts, Registry, Result, Server, ServerHandle, ServerInner,
    assemble::assemble,
    changing::begin_when_opened,
    item::{AnnotatedItem, IntoAddition, ItemScope, ItemSource, Named, RegisteredItem},
    parts::check_limits,
    service_block::ServiceBlock,
    state::StateFns,
    transform::{ItemChanges, Transform, Transformed},
};
#[cfg(feature = "auth")]
use crate::auth::Authentication;
#[cfg(feature = "http")]
use crate::core::config::HttpOptions;
use crate::core::{
    arguments::StateValue,
    bound::Configure,
    build_error::BuildError,
    config::{Limits, ListOptions, Options, ServerInfo, StdioOptions, Stores, TelemetryOptions},
    connection::ItemKind,
    crypto::Seal,
    extensions::Extensions,
    item::{ItemDescriptor, ItemLayer, Location},
    layer::{Layer, item_layer},
    log_limit::ServerLogLimits,
    observer::Observer,
    protocol::check_extension,
    sync::{Mutex, RwLock},
    tool::Tool,
};
#[cfg(feature = "config")]
use crate::settings::{PendingSettings, ReadSettings};

/// Purpose of the key that seals `requestState`.
const REQUEST_STATE: &str = "mcp-runtime call state 1";
/// Purpose of the key that seals cursors.
const CURSOR: &str = "mcp-runtime list cursor 1";

/// The builder of a server, which collects its items and options; `server!()` creates one.
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
/// let server = mcp_runtime::server!().tool::<add>().info(|info| info.instructions("Sums.")).build()?;
/// assert_eq!(server.instructions(), Some("Sums."));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing before `.run()` or `.build()`"]
// one field for each kind of thing that its methods collect, which `build` takes apart
pub struct ServerBuilder {
    pub(crate) info: ServerInfo,
    /// The module that invoked `server!()`.
    module: &'static str,
    pub(crate) options: Options,
    pub(crate) state: Extensions,
    pub(super) items: Vec<RegisteredItem>,
    /// The types and prefixes of its services.
    services: Vec<(TypeId, String)>,
    /// The types that open capabilities.
    named: Vec<Named>,
    pub(crate) errors: Vec<BuildError>,
    handle_receivers: Vec<HandleReceiver>,
    /// Outermost first.
    pub(crate) layers: Vec<ItemLayer>,
    /// Innermost first.
    transforms: Vec<Transform>,
    #[cfg(feature = "auth")]
    pub(crate) authentications: Vec<Authentication>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(super) state_fns: StateFns,
    #[cfg(feature = "config")]
    pub(crate) settings: Option<Box<PendingSettings>>,
}

type HandleReceiver = Box<dyn FnOnce(ServerHandle) + Send>;

impl ServerBuilder {
    #[doc(hidden)]
    pub fn new(name: &str, version: &str, module: &'static str) -> Self {
        Self {
            info: ServerInfo::new(name.into(), version.into()),
            module,
            options: Options::default(),
            state: Extensions::default(),
            items: Vec::new(),
            services: Vec::new(),
            named: Vec::new(),
            errors: Vec::new(),
            handle_receivers: Vec::new(),
            layers: Vec::new(),
            transforms: Vec::new(),
            #[cfg(feature = "auth")]
            authentications: Vec::new(),
            observers: Vec::new(),
            state_fns: StateFns::default(),
            #[cfg(feature = "config")]
            settings: None,
        }
    }

    /// Offers every annotated function of the crate that called `server!()`.
    #[doc(alias("discover_all"))]
    pub fn discover(self) -> Self {
        let module = self.module;
        let own = module.split("::").next().unwrap_or(module);
        self.discover_where(|at| at.krate() == own)
    }

    /// Offers every annotated function of these crates, which must be linked (`use tools as _;`), or of these modules and
    /// their submodules: `.discover_from([module_path!()])`.
    pub fn discover_from<'a>(mut self, crates: impl IntoIterator<Item = &'a str>) -> Self {
        for name in crates {
            let name = name.replace('-', "_");
            let before = self.items.len();
            self = self.discover_in(&name);
            if self.items.len() == before {
                self.errors.push(BuildError::new(format!(
                    "no annotated function of a crate `{name}` is linked, and none is in a module of that name\nadd `use {name} as _;` to the program"
                )));
            }
        }
        self
    }

    /// [`discover_from`](Self::discover_from) one module, which may have no items.
    #[doc(hidden)]
    pub fn discover_in(self, module: &str) -> Self {
        let inside = format!("{module}::");
        self.discover_where(|at| at.module == module || at.module.starts_with(&inside))
    }

    fn discover_where(mut self, wanted: impl Fn(&Location) -> bool) -> Self {
        let taken: HashSet<usize> = self.items.iter().filter_map(RegisteredItem::key).collect();
        for item in AnnotatedItem::all() {
            // an item that was discovered or named before is not registered again
            if wanted(&item.descriptor().location) && !taken.contains(&item.key()) {
                self.push(ItemSource::Annotated(item));
            }
        }
        self
    }

    /// Passes the handle to `take` once the server is built.
    pub(crate) fn give_handle_to(&mut self, take: impl FnOnce(ServerHandle) + Send + 'static) {
        self.handle_receivers.push(Box::new(take));
    }

    /// Names a capability.
    pub(crate) fn open_on_build(&mut self, named: Named) {
        if !self.named.iter().any(|known| known.key == named.key) {
            self.named.push(named);
        }
    }

    pub(super) fn push(&mut self, source: ItemSource) {
        if let ItemSource::Annotated(item) = &source {
            registered_items().lock().insert(item.key());
        }
        self.items.push(RegisteredItem::new(source));
    }

    /// Registers an annotated function by its marker.
    pub(crate) fn with_named(mut self, item: AnnotatedItem) -> Self {
        self.push_named(item);
        self
    }

    /// Registers an annotated function by its marker.
    pub(crate) fn push_named(&mut self, item: AnnotatedItem) {
        if self.items.iter().any(|other| other.key() == Some(item.key())) {
            let (kind, descriptor) = (item.kind().noun(), item.descriptor());
            let (name, call) = (descriptor.name, item.0.registration());
            self.errors.push(BuildError::at(
                descriptor.location,
                format!(
                    "{kind} `{name}` is registered twice\nremove `{call}`, since `.discover()` registers every annotated function, or one of the two"
                ),
            ));
            return;
        }
        self.push(ItemSource::Annotated(item));
    }

    /// Offers one annotated tool.
    #[doc(alias("add_tool", "with_tool", "register_tool", "register"))]
    // rustc shows the next line to those who pass the function as a value
    pub fn tool<T: Tool>(self /* write `.tool::<name>()` */) -> Self {
        self.with_named(const { AnnotatedItem::tool(T::DESCRIPTOR) })
    }

    /// Offers the annotated methods of a service: of every `impl` block of its type that has `#[mcp_service]`.
    ///
    /// The value may be shared with the rest of the program: an `Arc<S>` offers the methods of `S`.
    ///
    /// [`build`](Self::build) fails if no block is annotated.
    pub fn service<S: Any>(self, service: S) -> Self {
        self.add_service(Transformed::from_any(service), "")
    }

    /// Offers the annotated methods of a service under a prefix: tools and prompts as `prefix_name`, resources as
    /// `scheme://prefix/…`.
    pub fn service_as<S: Any>(self, prefix: &str, service: S) -> Self {
        self.add_service(Transformed::from_any(service), prefix)
    }

    fn add_service(mut self, service: Transformed, prefix: &str) -> Self {
        let Transformed { found, type_name: name, transforms } = service;
        let transforms: Arc<[_]> = transforms.into();
        let Some((instance, blocks)) = found else {
            self.errors.push(BuildError::new(format!(
                "`{name}` is not a service\nput `#[mcp_service]` on the `impl` with the methods that clients may use, and pass the value itself or an `Arc` of it"
            )));
            return self;
        };
        if let Some(block) = blocks.first() {
            let key = (block.service(), prefix.to_owned());
            if self.services.contains(&key) {
                let name = block.type_name();
                self.errors.push(BuildError::at(
                    block.location(),
                    format!("service `{name}` is registered twice\ngive one of them a prefix: `.service_as(\"other\", ..)`"),
                ));
                return self;
            }
            self.services.push(key);
        }
        for item in blocks.iter().flat_map(|block| block.items()) {
            registered_items().lock().insert(item.key());
            self.items.push(RegisteredItem {
                prefix: prefix.to_owned(),
                this: Some(instance.this.clone()),
                state: instance.state.clone(),
                transforms: transforms.clone(),
                ..RegisteredItem::new(ItemSource::Annotated(*item))
            });
        }
        self
    }

    /// Offers a tool, resource or prompt built at run time, a [`ToolDef`](crate::tool::ToolDef), a
    /// [`ResourceDef`](crate::resource::ResourceDef) or a [`PromptDef`](crate::prompt::PromptDef); or, with the feature
    /// `skills`, the skills in a directory, a `SkillsDir` of the module `skill`.
    ///
    /// [`ServerHandle::add`] adds a tool, resource or prompt while the server runs.
    #[expect(clippy::should_implement_trait, reason = "a server is not a sum")]
    #[doc(alias("event", "tool_def", "skills"))]
    // rustc shows the next line to those who name a function in it
    pub fn add<A: IntoAddition>(mut self, addition: A /* of a function: `.tool::<name>()` */) -> Self {
        addition.into_addition().apply(&mut self);
        self
    }

    /// Offers everything of another builder under a prefix, with the other builder's state.
    ///
    /// Tools and prompts become `prefix_name`, resources and skills `scheme://prefix/…`; an empty prefix changes no
    /// name. Its identity and options have no effect, except for its [rate](Limits::rate), which all its items share.
    pub fn mount(mut self, prefix: &str, mut other: Self) -> Self {
        #[cfg(feature = "auth")]
        if !other.authentications.is_empty() {
            self.errors.push(BuildError::new(format!(
                "the server that is mounted as `{prefix}` authenticates its callers, which only the outer one can do\n\
                 move its `.auth(..)` there"
            )));
        }
        if other.options.lists.listed.is_some() {
            self.errors.push(BuildError::new(format!(
                "the server that is mounted as `{prefix}` decides what lists show, which only the outer one can do\n\
                 move what decides it there: `.lists(|lists| lists.listed(..))`, or the addition"
            )));
        }
        let joined = |inner: &str| match (prefix.is_empty(), inner.is_empty()) {
            (true, _) => inner.to_owned(),
            (_, true) => prefix.to_owned(),
            _ => format!("{prefix}_{inner}"),
        };
        #[cfg(feature = "config")]
        if let Some(settings) = other.settings.take() {
            settings.mount(prefix, &other.state, &mut other.errors);
        }
        other.state_fns.declare(&mut other.state, &mut other.errors);
        self.errors.extend(other.errors);
        let scope = ItemScope {
            state: Arc::new(other.state),
            requested: other.options.request_type_ids(),
            layers: other.layers.into(),
            transforms: other.transforms.into(),
        };
        self.state_fns.mount(other.state_fns, &scope.state);
        let rate = check_limits(&other.options.limits, "a mounted builder: ", &mut self.errors);
        for item in other.items {
            let mut item = item.registered(&scope);
            item.prefix = joined(&item.prefix);
            item.mount_rates.extend(rate.clone());
            item.is_mounted = true;
            self.items.push(item);
        }
        for named in other.named {
            (named.mount)(&mut self.options, prefix, &other.options);
            self.open_on_build(named);
        }
        #[cfg(feature = "http")]
        {
            self.options.http.request_types.extend(other.options.http.request_types);
            self.options.http.health.checks.extend(other.options.http.health.checks);
        }
        self.handle_receivers.extend(other.handle_receivers);
        self
    }

    /// Registers state that functions take as `&T`; `Arc<T>` serves `&T`, `Arc<dyn Trait>` serves `&dyn Trait`.
    /// Each type has one value: a second one is an error from [`build`](Self::build).
    #[track_caller]
    #[doc(alias("with_state", "app_data", "data", "extension", "manage"))]
    pub fn state<T: StateValue>(mut self, value: T) -> Self {
        if self.state.provides_like::<T>() {
            self.errors.push(BuildError::new(format!(
                "two values of type `{}` are registered with `.state(..)`\n  --> {}\nregister one, or give each a type of its own",
                type_name::<T>(),
                Caller::caller(),
            )));
        }
        self.state.insert(value);
        self
    }

    /// Sets the server's description: `serverInfo` and `instructions` on the wire. Name and version are those of
    /// the crate that invokes `server!()`.
    ///
    /// ```
    /// let server = mcp_runtime::server!().info(|info| info.title("Shop").icon("https://example.com/icon.png"));
    /// ```
    #[doc(alias("name", "version", "instructions"))]
    pub fn info(mut self, set: impl Configure<ServerInfo>) -> Self {
        self.info = set(self.info);
        self
    }

    /// Declares an extension of the protocol that this program implements, with its settings, an object: a member of
    /// `capabilities.extensions` on the wire, which 2026-07-28 has. Methods and results of the extension are the program's
    /// business; whether a client declares it, [`client_capabilities`](crate::Context::client_capabilities) says.
    ///
    /// ```
    /// let server = mcp_runtime::server!().extension("com.example/prices", serde_json::json!({ "currency": "EUR" }));
    /// ```
    ///
    /// [`build`](Self::build) fails if the name is not a prefix and a name, or if the server declares the extension itself.
    ///
    /// See [extensions](https://modelcontextprotocol.io/extensions/overview#negotiation).
    pub fn extension(mut self, name: impl Into<String>, settings: impl Into<serde_json::Value>) -> Self {
        let (name, settings) = (name.into(), settings.into());
        match check_extension(&name, &settings) {
            Ok(()) => self.options.extensions.push((name, settings.to_string())),
            Err(error) => self.errors.push(BuildError::new(error)),
        }
        self
    }

    /// Sets limits that apply to all transports.
    #[doc(alias(
        "max_in_flight",
        "max_result",
        "rate",
        "timeout",
        "rate_limit",
        "request_timeout",
        "concurrency"
    ))]
    pub fn limits(mut self, set: impl Configure<Limits>) -> Self {
        self.options.limits = set(self.options.limits);
        self
    }

    /// Sets options of the lists of tools, resources, prompts and skills.
    #[doc(alias("page_size", "pagination"))]
    pub fn lists(mut self, set: impl Configure<ListOptions>) -> Self {
        self.options.lists = set(self.options.lists);
        self
    }

    /// Sets options of stdio.
    pub fn stdio(mut self, set: impl Configure<StdioOptions>) -> Self {
        self.options.stdio = set(self.options.stdio);
        self
    }

    /// Sets options of the HTTP transport.
    #[cfg(feature = "http")]
    #[doc(alias("allowed_hosts", "max_body", "cors", "sessions"))]
    pub fn http(mut self, set: impl Configure<HttpOptions>) -> Self {
        self.options.http = set(self.options.http);
        self
    }

    /// Sets the keys and the stores that replicas of the server share.
    #[doc(alias("keys", "keys_from_env"))]
    pub fn stores(mut self, set: impl Configure<Stores>) -> Self {
        self.options.stores = set(self.options.stores);
        self
    }

    /// Shows the cause of every failure to the client; for trusted deployments.
    pub fn detailed_errors(mut self) -> Self {
        self.options.detailed_errors = true;
        self
    }

    /// Puts a [layer](crate::layer) around every call of a tool, resource or prompt. The first is outermost.
    ///
    /// The layers of a [mounted](Self::mount) builder are inside those of the builder into which it is mounted, and those of
    /// an item are inside all of them.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use mcp_runtime::layer::{LayeredCall, Next, Outcome};
    ///
    /// async fn timing(call: LayeredCall, next: Next) -> Outcome {
    ///     let started = Instant::now();
    ///     let outcome = next.run(&call).await;
    ///     eprintln!("{} took {:?}", call.name(), started.elapsed());
    ///     outcome
    /// }
    ///
    /// let server = mcp_runtime::server!().discover().layer(timing);
    /// ```
    #[doc(alias("middleware", "wrap"))]
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.layers.push(item_layer(layer));
        self
    }

    /// Changes every item of this builder as it is registered: its name, texts, `_meta`, icon and annotations, and the
    /// descriptions, defaults and values of its arguments. The transforms of [mounted](Self::mount) builders run first.
    /// [`Transformed`](crate::transform::Transformed) changes a single service.
    /// An unknown name of an argument or an item is an error from [`build`](Self::build).
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// The weather in a city.
    /// #[mcp_tool]
    /// fn forecast(region: String, city: String) -> String {
    ///     format!("{city} of {region}: rain")
    /// }
    ///
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let of_region = |region: &'static str| {
    ///     mcp_runtime::server!().tool::<forecast>().transform(move |item| {
    ///         item.describe(format!("The weather in a city of {region}.")).fix("region", region)
    ///     })
    /// };
    /// let server = mcp_runtime::server!().mount("eu", of_region("Europe")).mount("as", of_region("Asia")).build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn transform(mut self, change: impl Fn(ItemChanges) -> ItemChanges + Send + Sync + 'static) -> Self {
        self.transforms.push(Transform::new(change));
        self
    }

    /// Sets the spans and metrics of requests, and the log messages that clients get: see [the guide](crate::guide::telemetry).
    ///
    /// ```
    /// let server = mcp_runtime::server!().discover().telemetry(|telemetry| telemetry.arguments());
    /// ```
    #[doc(alias("metrics", "client_logging", "tracing"))]
    pub fn telemetry(mut self, set: impl Configure<TelemetryOptions>) -> Self {
        self.options.telemetry = set(self.options.telemetry);
        self
    }

    /// Checks everything and builds the server.
    ///
    /// # Errors
    /// Every duplicate name or URI, with both locations; every injected type without state; every schema that cannot be
    /// enforced; every file of a skill that cannot be served.
    pub fn build(mut self) -> Result<Server> {
        #[cfg(feature = "config")]
        let server_settings = {
            self = self.configured()?;
            self.settings.take().and_then(|settings| {
                self.state_fns.show_settings(&Arc::new(settings.loaded(&self.state)));
                settings.into_read()
            })
        };
        self.state_fns.declare(&mut self.state, &mut self.errors);
        #[cfg(feature = "metrics")]
        self.add_metrics();
        let scope = ItemScope {
            state: Arc::new(self.state),
            requested: self.options.request_type_ids(),
            layers: self.layers.into(),
            transforms: self.transforms.into(),
        };
        let items = self.items.into_iter().map(|item| item.registered(&scope)).collect::<Vec<_>>();
        let opens = self.named.iter().map(|named| named.open).collect::<Vec<_>>();
        #[cfg(feature = "auth")]
        let authentications = self.authentications;
        #[cfg(not(feature = "auth"))]
        let authentications = [];
        let mut errors = self.errors;
        let parts =
            Parts::new(self.info, &mut self.options, self.observers.into(), &authentications, &mut errors);
        parts.store.share_rates(parts.rate.as_ref(), &items);
        let registry = checked_registry(&parts, &items, &opens, errors);
        #[cfg(feature = "config")]
        let registry =
            registry.map_err(|error| ReadSettings::explain_build_error(server_settings.as_ref(), error));
        let registry = registry?;
        let takes_handle = items.iter().any(|item| item.takes::<ServerHandle>());
        let publishes = takes_handle || !self.handle_receivers.is_empty();
        let has_handle = publishes || items.iter().any(|item| matches!(item.source, ItemSource::Place));
        let server = Server(Arc::new_cyclic(|this| ServerInner {
            settings: Arc::new(parts.settings(this, has_handle)),
            #[cfg(feature = "config")]
            server_settings,
            states: Seal::new(&parts.keys, REQUEST_STATE),
            cursors: Seal::new(&parts.keys, CURSOR),
            made_state: self.state_fns.bind(&scope.state),
            parts,
            scope,
            items: RwLock::new(items),
            items_changed_by: Mutex::default(),
            opens: RwLock::new(opens),
            differs_by_caller: registry.differs_by_caller(),
            registry: RwLock::new(Arc::new(registry)),
            has_handle: AtomicBool::new(has_handle),
            publishes: AtomicBool::new(publishes),
            awaited: Arc::default(),
            without_callers: AtomicBool::new(false),
            has_warned_of_update: AtomicBool::new(false),
            log_limits: ServerLogLimits::default(),
        }));
        server.begin(self.handle_receivers);
        Ok(server)
    }
}

impl Server {
    /// Lets what runs beside its calls begin when it opens, and gives its handle to those who asked for one.
    fn begin(&self, handle_receivers: Vec<HandleReceiver>) {
        AddedStore::fill_all(self);
        let this = Arc::downgrade(&self.0);
        begin_when_opened(&self.0.items.read(), &this, &self.0.made_state, &self.0.awaited);
        for receive in handle_receivers {
            receive(ServerHandle::new(this.clone()));
        }
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.info.name).finish_non_exhaustive()
    }
}

/// The registry of all items, if nothing is wrong with them and `errors` is empty.
fn checked_registry(
    parts: &Parts,
    items: &[RegisteredItem],
    opens: &[Open],
    mut errors: Vec<BuildError>,
) -> Result<Registry> {
    match assemble(parts, items, opens, Capabilities::default()) {
        Ok(registry) if errors.is_empty() => Ok(registry),
        assembled => {
            errors.extend(assembled.err().into_iter().flatten());
            Err(report("the server cannot be built", &errors))
        }
    }
}

/// All errors as one.
pub(super) fn report(what: &str, errors: &[BuildError]) -> Error {
    let list: Vec<_> = errors.iter().map(ToString::to_string).collect();
    Error::build(format!("{what}:\n{}", list.join("\n")))
}

/// The annotated items that some builder of the process has registered.
fn registered_items() -> &'static Mutex<HashSet<usize>> {
    static REGISTERED: OnceLock<Mutex<HashSet<usize>>> = OnceLock::new();
    REGISTERED.get_or_init(Mutex::default)
}

/// Warns of annotated items that no builder has registered, once, when the first server of the process starts.
pub(crate) fn warn_of_unregistered_items() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Ordering::Relaxed) {
        return;
    }
    for line in unregistered() {
        tracing::warn!("{line}");
    }
}

/// A line for each annotated item, and for each service, that no builder has registered.
pub(crate) fn unregistered() -> Vec<String> {
    let registered = registered_items().lock();
    let mut lines = Vec::new();
    for item in AnnotatedItem::all().into_iter().filter(|item| !registered.contains(&item.key())) {
        let ItemDescriptor { name, location, unregistered, .. } = item.descriptor();
        if !unregistered {
            // the attributes of the others do not have the option
            let or = if item.kind() == ItemKind::Tool { ", or mark it `unregistered`" } else { "" };
            lines.push(format!(
                "`{name}` at {location} is annotated, but no server offers it; register it{or}"
            ));
        }
    }
    let mut found: Vec<TypeId> = Vec::new();
    for block in ServiceBlock::all() {
        let is_registered = block.items().iter().any(|item| registered.contains(&item.key()));
        if !is_registered && !found.contains(&block.service()) {
            found.push(block.service());
            lines.push(format!(
                "the service `{}` at {} is annotated, but no server offers it; register a value of it with `.service(..)`",
                block.type_name(),
                block.location()
            ));
        }
    }
    lines
}
