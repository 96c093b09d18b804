//! What tools, resources and prompts have in common: name and texts, arguments, source location, and the error that
//! `build()` reports for one.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    arguments::{AnyArg, Call, HandlerResult, Inject},
    content::{ContentWriter, Icon},
    context::ClientFeature,
    jsonrpc::Object,
    protocol::Revision,
};

/// Tells the types of an annotated function's arguments and result: `S` is `fn(A, B) -> R`, without what is injected.
pub trait Signature<S> {}

/// Decodes the arguments of a call and calls the user's function, which returns an `R`.
pub(crate) type Handler<R> = fn(&mut Call<'_>) -> HandlerResult<R>;

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

/// What the attribute of any kind of item sets.
#[derive(Clone, Copy)]
pub struct ItemDescriptor {
    /// The wire's `name`, without the prefix of a mount.
    pub name: &'static str,
    /// The wire's `title`.
    pub title: Option<&'static str>,
    /// The wire's `description`.
    pub description: Option<&'static str>,
    /// The wire's `icons`.
    pub icons: &'static [Icon],
    /// JSON text of `_meta`.
    pub meta: Option<&'static str>,
    /// What a caller must have been granted.
    pub scopes: &'static [&'static str],
    /// Capabilities that the client must declare.
    pub requires: &'static [ClientFeature],
    /// The arguments, in the order of the function's parameters.
    pub args: &'static [&'static dyn AnyArg],
    /// The types that are injected by reference.
    pub injects: &'static [Inject],
    /// Where the function is.
    pub location: Location,
    /// Whether it is left out of the warning about items that no builder registers.
    pub unregistered: bool,
}

impl ItemDescriptor {
    /// Every field that an attribute may leave out.
    pub const EMPTY: Self = Self {
        name: "",
        location: Location::new("", 0, 0, ""),
        title: None,
        description: None,
        icons: &[],
        meta: None,
        scopes: &[],
        requires: &[],
        args: &[],
        injects: &[],
        unregistered: false,
    };
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
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemSpec {
    /// The wire's `name`, with the prefix of its mount.
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
    /// `None` for items made at run time.
    pub(crate) location: Option<Location>,
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
            location: Some(descriptor.location),
        }
    }

    /// An error in this item, at its location.
    pub(crate) fn build_error(&self, text: impl fmt::Display) -> BuildError {
        match self.location {
            Some(at) => BuildError::at(at, text),
            None => BuildError::new(text.to_string()),
        }
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

/// An annotated function, with the service value that a method is called on.
pub(crate) struct Function<R: 'static> {
    pub(crate) handler: Handler<R>,
    pub(crate) args: &'static [&'static dyn AnyArg],
    pub(crate) this: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether the warning that it holds up its client was logged.
    slow_logged: AtomicBool,
}

impl<R> Function<R> {
    pub(crate) fn new(
        handler: Handler<R>,
        args: &'static [&'static dyn AnyArg],
        this: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        Self { handler, args, this, slow_logged: AtomicBool::new(false) }
    }

    /// Whether the warning is still to be logged; `true` once.
    pub(crate) fn take_slow_warning(&self) -> bool {
        !self.slow_logged.swap(true, Ordering::Relaxed)
    }
}

impl<R> fmt::Debug for Function<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").finish_non_exhaustive()
    }
}

/// Why a server cannot be built; `build()` reports all of them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildError(String);

impl BuildError {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn at(at: Location, text: impl fmt::Display) -> Self {
        Self(format!("{text}\n  --> {at}"))
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
