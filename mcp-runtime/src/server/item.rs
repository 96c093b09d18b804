//! Items as a builder registers them, before and after its state is complete.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::sync::Semaphore;

use super::service_block::ServiceInstance;
#[cfg(feature = "skills")]
use crate::skill::SkillsDir;
use crate::{
    admission::{CallLimits, RateLimiter},
    arguments::Inject,
    extensions::Extensions,
    item::{ItemDescriptor, ItemLayer, ItemSpec},
    prompt::{PromptBuilder, PromptDef, PromptDescriptor},
    protocol::normalize_uri,
    resource::{ResourceBuilder, ResourceDef, ResourceDescriptor, uri_with_prefix},
    sort::sort_by,
    tool::{ToolBuilder, ToolDef, ToolDescriptor},
};

/// An item, without or with the state of the builder that it was registered with.
pub(super) enum BuilderItem {
    Own {
        source: ItemSource,
        prefix: String,
        this: Option<Arc<dyn Any + Send + Sync>>,
        /// The service as state, for functions that an attribute names.
        service: Extensions,
    },
    /// Of a mounted builder, with the state of that builder.
    Mounted(RegisteredItem),
}

impl BuilderItem {
    pub(super) fn new(source: ItemSource) -> Self {
        Self::Own { source, prefix: String::new(), this: None, service: Extensions::default() }
    }

    /// A method of that service.
    pub(super) fn method(item: AnnotatedItem, service: &ServiceInstance, prefix: &str) -> Self {
        Self::Own {
            source: ItemSource::Annotated(item),
            prefix: prefix.to_owned(),
            this: Some(service.this.clone()),
            service: service.state.clone(),
        }
    }

    pub(super) fn key(&self) -> Option<usize> {
        match self {
            Self::Own { source: ItemSource::Annotated(item), .. } => Some(item.key()),
            _ => None,
        }
    }

    /// The item with the state and the layers of its builder.
    pub(super) fn registered(
        self,
        state: &Arc<Extensions>,
        requested: &Arc<[TypeId]>,
        layers: &[ItemLayer],
    ) -> RegisteredItem {
        match self {
            Self::Own { source, prefix, this, service } => {
                let state = service.merge_over(state);
                let layers = layers.iter().cloned().chain(source.layers()).collect();
                RegisteredItem {
                    source,
                    prefix,
                    this,
                    state,
                    requested: requested.clone(),
                    permits: Arc::default(),
                    layers,
                    mount_rates: Vec::new(),
                    call_limits: Arc::default(),
                }
            }
            Self::Mounted(item) => {
                let layers = layers.iter().chain(&*item.layers).cloned().collect();
                RegisteredItem { layers, ..item }
            }
        }
    }
}

/// A registered item, with the state of its builder.
///
/// A clone, in a registry that is assembled again, is the same item: it has the same permits.
#[derive(Clone)]
pub(crate) struct RegisteredItem {
    pub(crate) source: ItemSource,
    /// Joined prefixes of services and mounts, outermost first; empty for none.
    pub(crate) prefix: String,
    pub(crate) this: Option<Arc<dyn Any + Send + Sync>>,
    /// Of the builder that it was registered with.
    pub(crate) state: Arc<Extensions>,
    pub(crate) requested: Arc<[TypeId]>,
    /// The permits of `max_concurrency`, once its entry has been made.
    pub(crate) permits: Arc<OnceLock<Arc<Semaphore>>>,
    /// Those of the builders that it was registered with and its own, outermost first.
    pub(crate) layers: Arc<[ItemLayer]>,
    /// The rates of the builders that it was mounted with, innermost first.
    pub(crate) mount_rates: Vec<Arc<RateLimiter>>,
    /// The limits on its callers, once its entry has been made.
    pub(crate) call_limits: Arc<OnceLock<Option<Arc<CallLimits>>>>,
}

/// Where an item comes from.
#[derive(Clone)]
pub(crate) enum ItemSource {
    Annotated(AnnotatedItem),
    Runtime(Arc<RuntimeItem>),
}

impl ItemSource {
    /// The layers of the item itself.
    pub(super) fn layers(&self) -> Vec<ItemLayer> {
        match self {
            Self::Annotated(item) => item.descriptor().layers.iter().map(|make| make()).collect(),
            Self::Runtime(item) => item.spec().layers.to_vec(),
        }
    }
}

/// An item that was made at run time.
#[derive(Debug)]
pub enum RuntimeItem {
    /// A tool.
    Tool(ToolDef),
    /// A resource or template.
    Resource(ResourceDef),
    /// A prompt.
    Prompt(PromptDef),
}

/// What identifies an item that was made at run time: a kind, and a name or URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuntimeKey<'a> {
    Tool(&'a str),
    /// Compared as build errors compare them.
    Resource(&'a str),
    Prompt(&'a str),
}

impl fmt::Display for RuntimeKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "tool `{name}`"),
            Self::Resource(uri) => write!(f, "resource `{uri}`"),
            Self::Prompt(name) => write!(f, "prompt `{name}`"),
        }
    }
}

impl RuntimeItem {
    pub(super) fn key(&self) -> RuntimeKey<'_> {
        match self {
            Self::Tool(tool) => RuntimeKey::Tool(tool.name()),
            Self::Resource(resource) => RuntimeKey::Resource(resource.uri()),
            Self::Prompt(prompt) => RuntimeKey::Prompt(prompt.name()),
        }
    }

    pub(super) fn spec(&self) -> &ItemSpec {
        match self {
            Self::Tool(tool) => &tool.spec.item,
            Self::Resource(resource) => &resource.spec.item,
            Self::Prompt(prompt) => &prompt.item,
        }
    }
}

/// A URI, such that two that differ only in case are equal.
pub(super) fn comparable_uri(uri: &str) -> String {
    normalize_uri(uri).to_lowercase()
}

/// What a program can add to a server while it runs: a [`ToolDef`], a [`ResourceDef`] or a [`PromptDef`].
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

impl IntoRuntimeItem for ToolDef {
    fn into_runtime_item(self) -> RuntimeItem {
        RuntimeItem::Tool(self)
    }
}

impl IntoRuntimeItem for ResourceDef {
    fn into_runtime_item(self) -> RuntimeItem {
        RuntimeItem::Resource(self)
    }
}

impl IntoRuntimeItem for PromptDef {
    fn into_runtime_item(self) -> RuntimeItem {
        RuntimeItem::Prompt(self)
    }
}

/// What a builder adds.
#[derive(Debug)]
pub enum Addition {
    /// A tool, resource or prompt made at run time.
    Item(Arc<RuntimeItem>),
    /// A directory of skills, which `build` reads.
    #[cfg(feature = "skills")]
    Skills(SkillsDir),
}

/// What a program can add to a server before it runs: also a directory of skills.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server",
    label = "not a tool, resource or prompt made at run time, nor a `SkillsDir`",
    note = "build one with `ToolDef::builder(..)`, `ResourceDef::builder(..)` or `PromptDef::builder(..)`, and `.handler(..)` at the end",
    note = "for an annotated function, write `.tool::<name>()`, `.resource::<name>()` or `.prompt::<name>()`",
    note = "for a directory of skills, write `SkillsDir::new(path)` (feature `skills`)"
)]
pub trait IntoAddition {
    #[doc(hidden)]
    fn into_addition(self) -> Addition;
}

impl IntoAddition for ToolDef {
    fn into_addition(self) -> Addition {
        Addition::Item(Arc::new(self.into_runtime_item()))
    }
}

/// A builder is one of these, until it has a handler.
#[diagnostic::on_unimplemented(
    message = "a tool, resource or prompt without a handler cannot be added to a server",
    label = "`.handler(..)` is missing",
    note = "`.handler(|call| async move {{ .. }})` or `.blocking_handler(|call| ..)` is the last step of a builder"
)]
pub trait HasHandler {}

/// Has a lifetime, so that the bound is checked where the impl is used.
#[derive(Debug)]
pub struct Unfinished<'a>(std::marker::PhantomData<&'a ()>);

macro_rules! refuse_builders {
    ($($builder:ident)*) => {$(
        impl IntoAddition for $builder
        where
            for<'a> Unfinished<'a>: HasHandler,
        {
            fn into_addition(self) -> Addition {
                unreachable!("a builder has no handler")
            }
        }
    )*};
}
refuse_builders!(ToolBuilder ResourceBuilder PromptBuilder);

impl IntoAddition for ResourceDef {
    fn into_addition(self) -> Addition {
        Addition::Item(Arc::new(self.into_runtime_item()))
    }
}

impl IntoAddition for PromptDef {
    fn into_addition(self) -> Addition {
        Addition::Item(Arc::new(self.into_runtime_item()))
    }
}

#[cfg(feature = "skills")]
impl IntoAddition for SkillsDir {
    fn into_addition(self) -> Addition {
        Addition::Skills(self)
    }
}

impl RegisteredItem {
    /// Whether its function takes a `&T`.
    pub(crate) fn takes<T: 'static>(&self) -> bool {
        let ItemSource::Annotated(item) = &self.source else { return false };
        let is_there = |injects: &[Inject]| injects.iter().any(Inject::is::<T>);
        is_there(item.descriptor().injects) || item.named().iter().any(|(_, takes)| is_there(takes))
    }

    /// The item, if it was made at run time and has this key, with the prefix of its mount.
    pub(super) fn runtime(&self, key: RuntimeKey<'_>) -> Option<&RuntimeItem> {
        let ItemSource::Runtime(item) = &self.source else { return None };
        let found = match (&**item, key) {
            (RuntimeItem::Tool(_), RuntimeKey::Tool(name))
            | (RuntimeItem::Prompt(_), RuntimeKey::Prompt(name)) => self.name() == name,
            (RuntimeItem::Resource(resource), RuntimeKey::Resource(uri)) => {
                comparable_uri(&uri_with_prefix(resource.uri(), &self.prefix)) == comparable_uri(uri)
            }
            _ => false,
        };
        found.then_some(item)
    }

    pub(super) fn name(&self) -> String {
        let own = match &self.source {
            ItemSource::Annotated(item) => item.descriptor().name,
            ItemSource::Runtime(item) => &item.spec().name,
        };
        if self.prefix.is_empty() { own.to_owned() } else { format!("{}_{own}", self.prefix) }
    }
}

/// One annotated item, as the linker or a service hands it over.
#[derive(Debug, Clone, Copy)]
pub enum AnnotatedItem {
    /// A tool.
    Tool(&'static ToolDescriptor),
    /// A resource or template.
    Resource(&'static ResourceDescriptor),
    /// A prompt.
    Prompt(&'static PromptDescriptor),
}

inventory::collect!(AnnotatedItem);

impl AnnotatedItem {
    pub(crate) fn descriptor(&self) -> &'static ItemDescriptor {
        match self {
            Self::Tool(def) => &def.item,
            Self::Resource(def) => &def.item,
            Self::Prompt(def) => &def.item,
        }
    }

    /// The functions that its attributes name, by option, and what is injected into each.
    pub(crate) fn named(&self) -> Vec<(&'static str, Vec<Inject>)> {
        let completers = self.descriptor().args.iter().filter_map(|arg| arg.completer());
        let mut named: Vec<_> = completers.map(|complete| ("complete", complete().injects)).collect();
        let rules: Vec<Inject> = self.descriptor().rules.injects().collect();
        if !rules.is_empty() {
            named.push(("validate", rules));
        }
        if let Self::Resource(def) = self {
            named.extend(def.list.map(|list| ("list", list().injects)));
            named.extend(def.subscribe.map(|check| ("subscribe", check().injects)));
        }
        named
    }

    /// Identifies the item; its location does not, since one `macro_rules!` invocation can define several.
    pub(crate) fn key(&self) -> usize {
        match self {
            Self::Tool(def) => std::ptr::from_ref(*def).addr(),
            Self::Resource(def) => std::ptr::from_ref(*def).addr(),
            Self::Prompt(def) => std::ptr::from_ref(*def).addr(),
        }
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
        }
    }

    /// Every annotated free function of the program, by crate, file, line, column and name.
    pub(crate) fn all() -> Vec<Self> {
        let mut all: Vec<Self> = inventory::iter::<Self>.into_iter().copied().collect();
        let key = |item: &Self| {
            let ItemDescriptor { location: at, name, .. } = item.descriptor();
            (at.krate(), at.file, at.line, at.column, *name)
        };
        sort_by(&mut all, |one, other| key(one).cmp(&key(other)));
        all
    }
}
