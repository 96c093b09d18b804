//! Items as a builder registers them, before and after its state is complete.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, OnceLock},
};

use super::{Assembly, Open, ServerBuilder, changing::ItemPlace, transform::Transform};
use crate::{
    core::{
        arguments::{BoxFuture, Inject},
        build_error::BuildError,
        config::Options,
        connection::{ItemKind, ItemView, Principal},
        extensions::Extensions,
        gates::Gates,
        item::{ItemDescriptor, ItemLayer, ItemSpec},
        protocol::{normalize_uri, uri_with_prefix},
        store::CallerRate,
    },
    schema::sort_by,
};

/// A registered item, with the state of its builder once that is complete.
///
/// A clone, in a registry that is assembled again, is the same item: it has the same gates.
#[derive(Clone)]
pub(crate) struct RegisteredItem {
    pub(crate) source: ItemSource,
    /// Joined prefixes of services and mounts, outermost first; empty for none.
    pub(crate) prefix: String,
    pub(crate) this: Option<Arc<dyn Any + Send + Sync>>,
    /// The state of the builder that it was registered with; before, its service as state, for functions that an attribute
    /// names.
    pub(crate) state: Arc<Extensions>,
    pub(crate) requested: Arc<[TypeId]>,
    /// The layers of the builders that it was registered with and its own, outermost first.
    pub(crate) layers: Arc<[ItemLayer]>,
    /// The transforms of its service and of the builders that it was registered with, innermost first.
    pub(crate) transforms: Arc<[Transform]>,
    /// The rates of the builders that it was mounted with, innermost first.
    pub(crate) mount_rates: Vec<CallerRate>,
    /// The gates of its calls, once its entry has been made.
    pub(crate) gates: Arc<OnceLock<Option<Arc<Gates>>>>,
    /// Whether it is of a mounted builder, and has the state of that.
    pub(super) is_mounted: bool,
    /// The place of the addition that it is of, if that changes its items while the server runs.
    pub(super) place: Option<Arc<ItemPlace>>,
}

impl RegisteredItem {
    pub(super) fn new(source: ItemSource) -> Self {
        Self {
            layers: source.layers().into(),
            source,
            prefix: String::new(),
            this: None,
            state: Arc::default(),
            requested: Arc::default(),
            transforms: Arc::default(),
            mount_rates: Vec::new(),
            gates: Arc::default(),
            is_mounted: false,
            place: None,
        }
    }

    /// Identifies an annotated item of this builder.
    pub(super) fn key(&self) -> Option<usize> {
        match &self.source {
            ItemSource::Annotated(item) if !self.is_mounted => Some(item.key()),
            _ => None,
        }
    }

    /// The item in the scope of its builder, or with the layers and transforms of the one that has mounted that.
    pub(super) fn registered(self, scope: &ItemScope) -> Self {
        let layers = scope.layers.iter().chain(&*self.layers).cloned().collect();
        let transforms = self.transforms.iter().chain(&*scope.transforms).cloned().collect();
        let item = Self { layers, transforms, ..self };
        if item.is_mounted {
            return item;
        }
        Self { state: item.state.merge_over(&scope.state), requested: scope.requested.clone(), ..item }
    }
}

/// What a builder gives to each of its items, also to those that are added later.
#[derive(Clone)]
pub(super) struct ItemScope {
    pub(super) state: Arc<Extensions>,
    /// The types that requests provide.
    pub(super) requested: Arc<[TypeId]>,
    /// Outermost first.
    pub(super) layers: Arc<[ItemLayer]>,
    /// Innermost first.
    pub(super) transforms: Arc<[Transform]>,
}

/// Where an item comes from.
#[derive(Clone)]
pub(crate) enum ItemSource {
    Annotated(AnnotatedItem),
    Runtime(RuntimeItem),
    /// No item: where those of an addition go, which come while the server runs.
    Place,
}

impl ItemSource {
    /// The layers of the item itself.
    pub(super) fn layers(&self) -> Vec<ItemLayer> {
        match self {
            Self::Annotated(item) => item.descriptor().layers.iter().map(|make| make()).collect(),
            Self::Runtime(item) => item.0.spec().layers.to_vec(),
            Self::Place => Vec::new(),
        }
    }

    pub(super) fn kind(&self) -> ItemKind {
        match self {
            Self::Annotated(item) => item.kind(),
            Self::Runtime(item) => item.0.key().kind,
            Self::Place => ItemKind::Tool,
        }
    }
}

/// An item of any kind that a program makes at run time.
pub(crate) trait MadeItem: fmt::Debug + Send + Sync {
    /// The key that identifies it.
    fn key(&self) -> RuntimeKey<'_>;

    /// The part that all kinds of items have.
    fn spec(&self) -> &ItemSpec;

    /// Its tags, as what decides who sees it gets them.
    fn tags(&self) -> &'static [&'static str] {
        &[]
    }

    /// Adds its entry to a registry.
    ///
    /// # Errors
    /// Its definition is wrong.
    fn add_to(&self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError>;
}

/// An item that was made at run time.
#[derive(Debug, Clone)]
pub struct RuntimeItem(pub(crate) Arc<dyn MadeItem>);

/// The key of an item that was made at run time: a kind, and a name or URI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuntimeKey<'a> {
    pub(crate) kind: ItemKind,
    /// A URI is compared as build errors compare it.
    pub(crate) name: &'a str,
}

impl fmt::Display for RuntimeKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.noun(), self.name)
    }
}

/// A URI, such that two that differ only in case are equal.
pub(crate) fn comparable_uri(uri: &str) -> String {
    normalize_uri(uri).to_lowercase()
}

/// An item that a program can add to a server while it runs: a [`ToolDef`](crate::tool::ToolDef), a
/// [`ResourceDef`](crate::resource::ResourceDef) or a [`PromptDef`](crate::prompt::PromptDef).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server that runs",
    label = "not a tool, resource or prompt made at run time",
    note = "build one with `ToolDef::builder(..)`, `ResourceDef::builder(..)` or `PromptDef::builder(..)`, and `.handler(..)` at the end",
    note = "annotated functions and directories of skills are registered with the builder of the server"
)]
pub trait IntoRuntimeItem {
    #[doc(hidden)]
    fn into_runtime_item(self) -> RuntimeItem;
}

/// What one call of [`ServerBuilder::add`] adds: any number of items, and errors that `build()` reports.
///
/// A package that makes items of something, such as a description of an API, gives them to a server by one value:
///
/// ```
/// use mcp_runtime::{addition::{Addition, IntoAddition}, tool::{ToolCall, ToolDef}};
///
/// struct Greetings(&'static [&'static str]);
///
/// impl IntoAddition for Greetings {
///     fn into_addition(self) -> Addition {
///         if self.0.is_empty() {
///             return Addition::error("greetings are missing");
///         }
///         let tool = |name: &&str| ToolDef::builder(*name).handler(|_: ToolCall| async { "hello" });
///         self.0.iter().map(tool).fold(Addition::new(), Addition::and)
///     }
/// }
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!().add(Greetings(&["hello", "hi"])).build()?;
/// assert!(mcp_runtime::server!().add(Greetings(&[])).build().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Addition(Vec<AddFn>);

type AddFn = Box<dyn FnOnce(&mut ServerBuilder)>;

impl Addition {
    /// Adds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds this as well, after what is there.
    #[must_use]
    pub fn and(mut self, other: impl IntoAddition) -> Self {
        self.0.extend(other.into_addition().0);
        self
    }

    /// Adds an error: `build()` fails, and reports it with all others.
    pub fn error(message: impl Into<String>) -> Self {
        let error = BuildError::new(message.into());
        Self::of(|builder| builder.errors.push(error))
    }

    /// Adds a check without which the server is not ready, like that of `HttpOptions::readiness`; `name` is for the log.
    /// Servers without HTTP have no probes.
    pub fn readiness<F, Fut>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        let (name, run) = (name.into(), Arc::new(move || -> BoxFuture<bool> { Box::pin(check()) }));
        Self::of(move |builder| builder.options.add_readiness_check(name, run))
    }

    /// Adds a rule for what lists show, as [`ListOptions::listed`](crate::config::ListOptions::listed) does.
    #[must_use]
    pub fn listed(
        mut self,
        rule: impl Fn(Option<&Principal>, &ItemView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let add = |builder: &mut ServerBuilder| {
            builder.options.lists = std::mem::take(&mut builder.options.lists).listed(rule);
        };
        self.0.push(Box::new(add));
        self
    }

    pub(crate) fn of(add: impl FnOnce(&mut ServerBuilder) + 'static) -> Self {
        Self(vec![Box::new(add)])
    }

    pub(super) fn apply(self, builder: &mut ServerBuilder) {
        self.0.into_iter().for_each(|add| add(builder));
    }
}

impl IntoAddition for Addition {
    fn into_addition(self) -> Addition {
        self
    }
}

/// A type that only names a capability.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    /// Each is named once, however often a program does.
    pub(crate) key: &'static str,
    pub(crate) open: Open,
    /// Takes over what a mounted builder says of it, under a prefix.
    pub(crate) mount: fn(&mut Options, &str, &Options),
}

impl Addition {
    pub(crate) fn item(item: impl IntoRuntimeItem) -> Self {
        let item = item.into_runtime_item();
        Self::of(|builder| builder.push(ItemSource::Runtime(item)))
    }
}

impl fmt::Debug for Addition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Addition")
    }
}

/// A value that a program can add to a server before it runs: an item that was made at run time, a directory of skills, or
/// what a package makes items of; see [`Addition`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server",
    label = "not a tool, resource or prompt made at run time, nor a `SkillsDir`",
    note = "build one with `ToolDef::builder(..)`, `ResourceDef::builder(..)` or `PromptDef::builder(..)`, and `.handler(..)` at the end",
    note = "for an annotated function, write `.tool::<name>()`, `.resource::<name>()` or `.prompt::<name>()`",
    note = "for a directory of skills, write `SkillsDir::new(path)` (feature `skills`)"
)]
pub trait IntoAddition {
    /// What is added.
    fn into_addition(self) -> Addition;
}

/// Says of a definition that programs can add it.
macro_rules! impl_additions {
    ($definition:ident) => {
        impl $crate::core::server::IntoRuntimeItem for $definition {
            fn into_runtime_item(self) -> $crate::core::server::RuntimeItem {
                $crate::core::server::RuntimeItem(std::sync::Arc::new(self))
            }
        }

        impl $crate::core::server::IntoAddition for $definition {
            fn into_addition(self) -> $crate::core::server::Addition {
                $crate::core::server::Addition::item(self)
            }
        }
    };
}
pub(crate) use impl_additions;

impl RegisteredItem {
    /// Whether its function takes a `&T`.
    pub(crate) fn takes<T: 'static>(&self) -> bool {
        let ItemSource::Annotated(item) = &self.source else { return false };
        let is_there = |injects: &[Inject]| injects.iter().any(Inject::is::<T>);
        is_there(item.descriptor().injects) || item.0.named().iter().any(|(_, takes)| is_there(takes))
    }

    /// The item, if it was made at run time and has this key, with the prefix of its mount.
    pub(super) fn runtime(&self, key: RuntimeKey<'_>) -> Option<&RuntimeItem> {
        let ItemSource::Runtime(item) = &self.source else { return None };
        let own = item.0.key();
        let found = own.kind == key.kind
            && match key.kind {
                ItemKind::Resource => {
                    comparable_uri(&uri_with_prefix(own.name, &self.prefix)) == comparable_uri(key.name)
                }
                _ => self.name() == key.name,
            };
        found.then_some(item)
    }

    pub(crate) fn name(&self) -> String {
        let own = match &self.source {
            ItemSource::Annotated(item) => item.descriptor().name,
            ItemSource::Runtime(item) => &item.0.spec().name,
            ItemSource::Place => "",
        };
        if self.prefix.is_empty() { own.to_owned() } else { format!("{}_{own}", self.prefix) }
    }
}

/// The definition that an attribute generates for a function: an item of some kind.
pub(crate) trait Annotation: Sync {
    /// The part that all kinds of items have.
    fn descriptor(&self) -> &ItemDescriptor;

    fn kind(&self) -> ItemKind;

    /// The call of the builder that registers it.
    fn registration(&self) -> String {
        format!(".{}::<{}>()", self.kind().noun(), self.descriptor().name)
    }

    /// The functions that its attributes name, by option, and what is injected into each.
    fn named(&self) -> Vec<(&'static str, Vec<Inject>)> {
        named_functions(self.descriptor())
    }

    /// Adds its entry to a registry.
    ///
    /// # Errors
    /// It is declared in a way that cannot be served.
    fn add_to(&'static self, assembly: &mut Assembly<'_>, item: &RegisteredItem) -> Result<(), BuildError>;
}

/// The functions that the attributes of any item may name.
pub(crate) fn named_functions(item: &ItemDescriptor) -> Vec<(&'static str, Vec<Inject>)> {
    let completers = item.args.iter().filter_map(|arg| arg.options().complete);
    let mut named: Vec<_> = completers.map(|complete| ("complete", complete().injects)).collect();
    let rules: Vec<Inject> = item.rules.injects().collect();
    if !rules.is_empty() {
        named.push(("validate", rules));
    }
    named
}

/// One annotated item, as the linker or a service hands it over.
#[derive(Clone, Copy)]
pub struct AnnotatedItem(pub(crate) &'static dyn Annotation);

inventory::collect!(AnnotatedItem);

impl fmt::Debug for AnnotatedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnnotatedItem").field(self.0.descriptor()).finish()
    }
}

impl AnnotatedItem {
    pub(crate) fn descriptor(&self) -> &'static ItemDescriptor {
        self.0.descriptor()
    }

    pub(crate) fn kind(&self) -> ItemKind {
        self.0.kind()
    }

    /// Identifies the item; its location does not, since one `macro_rules!` invocation can define several.
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self.0).addr()
    }

    /// Every annotated free function of the program, by crate, file, line, column and name.
    pub(crate) fn all() -> Vec<Self> {
        let mut all: Vec<Self> = inventory::iter::<Self>.into_iter().copied().collect();
        let key = |item: &Self| {
            let ItemDescriptor { location: at, name, .. } = *item.descriptor();
            (at.krate(), at.file, at.line, at.column, name)
        };
        sort_by(&mut all, |one, other| key(one).cmp(&key(other)));
        all
    }
}
