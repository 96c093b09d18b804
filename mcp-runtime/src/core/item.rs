//! The common part of tools, resources and prompts: name and texts, conditions of their calls, arguments, source location.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use crate::core::{
    admission::Rate,
    arguments::{AnyArg, Inject, ItemRules},
    callback::Callback,
    content::{ContentWriter, Icon},
    context::ClientFeature,
    gates::Gates,
    jsonrpc::Object,
    layer::DynLayer,
    protocol::Revision,
};

/// Tells the types of an annotated function's arguments and result: `S` is `fn(A, B) -> R`, without what is injected.
pub trait Signature<S> {}

/// The target of a client's typed call: the marker of an annotated function, or of a method of a service, with a descriptor
/// of its kind.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is of another kind",
    label = "cannot be used in this way",
    note = "a tool is called with `.call((..))`, a prompt is filled in with `.prompt((..))`, a resource is read with `.read((..))`"
)]
pub trait Typed<D: 'static> {
    #[doc(hidden)]
    const TYPED: &'static D;
}

/// Where an item is in the user's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub(crate) module: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Location {
    /// A position in a file, and the module it is in.
    #[must_use]
    pub const fn new(file: &'static str, line: u32, column: u32, module: &'static str) -> Self {
        Self { module, file, line, column }
    }

    /// Where the caller is, in a module.
    #[must_use]
    #[track_caller]
    pub const fn here(module: &'static str) -> Self {
        let caller = std::panic::Location::caller();
        Self::new(caller.file(), caller.line(), caller.column(), module)
    }

    /// The crate's name, as `module_path!` spells it.
    pub(crate) fn krate(&self) -> &'static str {
        self.module.split("::").next().unwrap_or(self.module)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The options that the attribute of any kind of item sets.
#[derive(Clone, Copy)]
// a field for each option of an attribute, by which expansions name it; without allocations, since it is a `static`
pub struct ItemDescriptor {
    /// `name` on the wire, without the prefix of a mount.
    pub name: &'static str,
    /// `title` on the wire.
    pub title: Option<&'static str>,
    /// `description` on the wire.
    pub description: Option<&'static str>,
    /// `icons` on the wire.
    pub icons: &'static [Icon],
    /// JSON text of `_meta`.
    pub meta: Option<&'static str>,
    /// The scopes that a caller must have been granted.
    pub scopes: &'static [&'static str],
    /// Capabilities that the client must declare.
    pub requires: &'static [ClientFeature],
    /// How many times one caller may call it, and in how many milliseconds.
    pub rate: Option<(u32, u64)>,
    /// How many calls of one caller may run at once.
    pub max_concurrency_per_caller: Option<usize>,
    /// How many bytes a result may have.
    pub max_result: Option<u64>,
    /// The arguments, in the order of the function's parameters.
    pub args: &'static [&'static dyn AnyArg],
    /// The rules over its arguments.
    pub rules: ItemRules,
    /// The types that are injected by reference.
    pub injects: &'static [Inject],
    /// Whether it takes values that are made from the request.
    pub makes_values: bool,
    /// Where the function is.
    pub location: Location,
    /// Whether it is left out of the warning about items that no builder registers.
    pub unregistered: bool,
    /// Makes its own layers, outermost first.
    pub layers: &'static [fn() -> ItemLayer],
}

impl ItemDescriptor {
    /// Every field that an attribute may leave out; on its own, the descriptor of an item with errors.
    pub const EMPTY: Self = Self {
        name: "",
        location: Location::new("", 0, 0, ""),
        title: None,
        description: None,
        icons: &[],
        meta: None,
        scopes: &[],
        requires: &[],
        rate: None,
        max_concurrency_per_caller: None,
        max_result: None,
        args: &[],
        rules: ItemRules::NONE,
        injects: &[],
        makes_values: false,
        unregistered: false,
        layers: &[],
    };
}

/// An item at this location, without what an attribute may leave out.
#[must_use]
pub const fn item_at(name: &'static str, location: Location) -> ItemDescriptor {
    ItemDescriptor { name, location, ..ItemDescriptor::EMPTY }
}

/// [`item_at`] the place where this is called, in a module.
#[must_use]
#[track_caller]
pub const fn item(name: &'static str, module: &'static str) -> ItemDescriptor {
    item_at(name, Location::here(module))
}

impl fmt::Debug for ItemDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, location, .. } = self;
        f.debug_struct("ItemDescriptor")
            .field("name", name)
            .field("location", location)
            .finish_non_exhaustive()
    }
}

/// An item's name, texts and conditions, whether an attribute or a builder describes it.
#[derive(Clone, Default)]
// a field for each method of a builder of items, and what its server adds
pub(crate) struct ItemSpec {
    /// `name` on the wire, with the prefix of its mount.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) icons: Vec<Icon>,
    /// JSON text of `_meta`.
    pub(crate) meta: Option<String>,
    /// Scopes that a caller needs.
    pub(crate) scopes: Vec<String>,
    /// Capabilities that the client must declare.
    pub(crate) requires: Vec<ClientFeature>,
    /// How often one caller may call it, or what is wrong with that.
    pub(crate) rate: Option<Result<Rate, String>>,
    /// How many calls of one caller may run at once.
    pub(crate) max_concurrency_per_caller: Option<usize>,
    /// How many bytes a result may have.
    pub(crate) max_result: Option<usize>,
    /// The gates of its calls on this server, if it has any.
    pub(crate) gates: Option<Arc<Gates>>,
    /// How long its function may take: its own limit, and once it is registered, that of the server if it has none.
    pub(crate) timeout: Option<Duration>,
    /// `None` for items made at run time.
    pub(crate) location: Option<Location>,
    /// Outermost first. Of an item that is being built, its own; of one that is registered, also those of the server and
    /// its mounts.
    pub(crate) layers: Arc<[ItemLayer]>,
    /// The names of the arguments whose values are left out of traces and the audit log.
    pub(crate) secrets: Vec<String>,
    /// Further members of its entry in a list.
    pub(crate) members: Map<String, Value>,
    /// Names by which transforms find its arguments, beside their own.
    pub(crate) aliases: Vec<(String, String)>,
}

/// A layer around the calls of an item.
#[derive(Debug, Clone)]
pub struct ItemLayer(pub(crate) Callback<DynLayer>);

impl fmt::Debug for ItemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ItemSpec {
    pub(crate) fn new(name: String, descriptor: &ItemDescriptor) -> Self {
        Self {
            name,
            title: descriptor.title.map(str::to_owned),
            description: descriptor.description.map(str::to_owned),
            icons: descriptor.icons.to_vec(),
            meta: descriptor.meta.map(str::to_owned),
            scopes: descriptor.scopes.iter().map(|&scope| scope.to_owned()).collect(),
            requires: descriptor.requires.to_vec(),
            rate: descriptor.rate.map(|(times, ms)| Ok(Rate::new(times, Duration::from_millis(ms)))),
            max_concurrency_per_caller: descriptor.max_concurrency_per_caller,
            max_result: descriptor.max_result.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            gates: None,
            timeout: None,
            location: Some(descriptor.location),
            layers: Arc::default(),
            secrets: descriptor
                .args
                .iter()
                .filter(|arg| arg.options().secret)
                .map(|arg| arg.name().to_owned())
                .collect(),
            members: Map::new(),
            aliases: Vec::new(),
        }
    }

    /// Appends the members of its entry that the builder has no method for; the kind of the item `has` others.
    pub(crate) fn write_members(&self, entry: &mut Object<'_>, has: &[&str]) {
        const COMMON: [&str; 5] = ["name", "title", "description", "icons", "_meta"];
        for (key, value) in &self.members {
            if !COMMON.contains(&key.as_str()) && !has.contains(&key.as_str()) {
                entry.escaped_value(key, value);
            }
        }
    }

    /// Adds a member to `_meta`.
    pub(crate) fn insert_meta(&mut self, key: String, value: Value) {
        let members = self.meta.as_deref().and_then(|meta| serde_json::from_str::<Map<_, _>>(meta).ok());
        let mut members = members.unwrap_or_default();
        members.insert(key, value);
        self.meta = Some(Value::Object(members).to_string());
    }

    /// Appends title, description and icons to its entry in a list, as far as the revision has them.
    pub(crate) fn write_texts(&self, entry: &mut Object<'_>, revision: Revision) {
        let Self { title, description, icons, .. } = self;
        write_texts(entry, revision, title.as_deref(), description.as_deref(), icons);
    }
}

/// Appends title, description and icons, as far as the revision has them.
pub(crate) fn write_texts(
    entry: &mut Object<'_>,
    revision: Revision,
    title: Option<&str>,
    description: Option<&str>,
    icons: &[Icon],
) {
    if revision >= Revision::V2025_06_18 {
        entry.opt_str("title", title);
    }
    entry.opt_str("description", description);
    ContentWriter(revision).write_icons(entry, icons);
}

/// Implements the setters that builders of all kinds of item have.
macro_rules! impl_item_setters {
    ($builder:ident, $noun:literal) => {
        impl $builder {
            /// Sets `title` on the wire.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.item_mut().title = Some(title.into());
                self
            }

            /// Sets `description` on the wire.
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.item_mut().description = Some(text.into());
                self
            }

            #[doc = concat!("Adds an icon: a URL, or an [`Icon`](crate::core::content::Icon). One that clients would reject is an error when the ", $noun, " is added.")]
            pub fn icon(mut self, icon: impl Into<$crate::core::content::Icon>) -> Self {
                self.item_mut().icons.push(icon.into());
                self
            }

            /// Sets the scopes that a caller needs.
            pub fn scopes(mut self, scopes: impl $crate::core::bound::Texts) -> Self {
                self.item_mut().scopes = $crate::core::bound::Texts::into_texts(scopes);
                self
            }

            /// Sets the capabilities that the client must declare; requests of other clients are refused.
            pub fn requires(mut self, features: impl IntoIterator<Item = $crate::core::context::ClientFeature>) -> Self {
                self.item_mut().requires = features.into_iter().collect();
                self
            }

            #[doc = concat!("Sets how often one caller may call it: `\"60/1m\"`, `\"5/s\"`; more is refused. An invalid rate is an error when the ", $noun, " is added.")]
            pub fn rate(mut self, rate: &str) -> Self {
                self.item_mut().rate = Some($crate::core::admission::Rate::parse(rate));
                self
            }

            /// Sets how many calls of one caller may run at once; more are refused.
            pub fn max_concurrency_per_caller(mut self, calls: usize) -> Self {
                self.item_mut().max_concurrency_per_caller = Some(calls);
                self
            }

            /// Sets how many bytes a result may have. A longer text of a tool is cut, with a notice; resources and
            /// prompts fail with an error that names the size.
            pub fn max_result(mut self, bytes: usize) -> Self {
                self.item_mut().max_result = Some(bytes);
                self
            }

            #[doc = concat!("Sets a member of the ", $noun, "'s entry in a list that has no method here, such as one of an extension. Members that have a method are ignored, as are hints among the `annotations` of a tool.")]
            pub fn member(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
                self.item_mut().members.insert(key.into(), value.into());
                self
            }

            /// Lets transforms find arguments by the names that another program has for them; several may have one.
            #[doc(hidden)]
            pub fn argument_aliases(mut self, aliases: Vec<(String, String)>) -> Self {
                self.item_mut().aliases = aliases;
                self
            }

            /// Puts a [layer](crate::layer) around each call, inside the layers of the server. The first is outermost.
            pub fn layer(mut self, layer: impl $crate::core::layer::Layer) -> Self {
                $crate::core::layer::push_layer(self.item_mut(), layer);
                self
            }
        }
    };
}
pub(crate) use impl_item_setters;
