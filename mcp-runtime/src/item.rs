//! What tools, resources and prompts have in common: name and texts, arguments, source location, and the error that
//! `build()` reports for one.

use std::{any::Any, fmt, sync::Arc};

use crate::{
    arguments::{AnyArg, Call, Inject, Outcome},
    content::{ContentWriter, Icon},
    context::ClientFeature,
    jsonrpc::Object,
    protocol::Revision,
};

/// Decodes the arguments of a call and calls the user's function, which returns an `R`.
pub(crate) type Handler<R> = fn(&mut Call<'_>) -> Outcome<R>;

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
pub(crate) struct ItemDescriptor {
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: Option<&'static str>,
    pub(crate) icons: &'static [Icon],
    /// JSON text of `_meta`.
    pub(crate) meta: Option<&'static str>,
    pub(crate) scopes: &'static [&'static str],
    /// Capabilities that the client must declare.
    pub(crate) requires: &'static [ClientFeature],
    pub(crate) args: &'static [&'static dyn AnyArg],
    pub(crate) injects: &'static [Inject],
    pub(crate) at: Location,
    /// Whether it is left out of the warning about items that no builder registers.
    pub(crate) unlisted: bool,
}

impl ItemDescriptor {
    pub(crate) const fn new(name: &'static str, at: Location) -> Self {
        Self {
            name,
            title: None,
            description: None,
            icons: &[],
            meta: None,
            scopes: &[],
            requires: &[],
            args: &[],
            injects: &[],
            at,
            unlisted: false,
        }
    }
}

/// Implements the setters that the descriptors of all kinds share.
macro_rules! descriptor_setters {
    ($def:ident) => {
        impl $def {
            /// The descriptor of an item whose attribute is invalid, so that its registration is not a second error.
            #[must_use]
            pub const fn invalid() -> Self {
                Self::new("invalid", crate::item::Location::new("", 0, 0, ""))
            }

            /// Sets the wire's `title`.
            #[must_use]
            pub const fn title(mut self, title: &'static str) -> Self {
                self.item.title = Some(title);
                self
            }

            /// Sets the wire's `description`.
            #[must_use]
            pub const fn description(mut self, text: &'static str) -> Self {
                self.item.description = Some(text);
                self
            }

            /// Sets the wire's `icons`.
            #[must_use]
            pub const fn icons(mut self, icons: &'static [crate::content::Icon]) -> Self {
                self.item.icons = icons;
                self
            }

            /// Sets the entry's `_meta`, as JSON text.
            #[must_use]
            pub const fn meta(mut self, json: &'static str) -> Self {
                self.item.meta = Some(json);
                self
            }

            /// Sets the scopes that a caller needs.
            #[must_use]
            pub const fn scopes(mut self, scopes: &'static [&'static str]) -> Self {
                self.item.scopes = scopes;
                self
            }

            /// Sets the capabilities that the client must declare.
            #[must_use]
            pub const fn requires(mut self, features: &'static [crate::context::ClientFeature]) -> Self {
                self.item.requires = features;
                self
            }

            /// Sets the arguments.
            #[must_use]
            pub const fn args(mut self, args: &'static [&'static dyn crate::arguments::AnyArg]) -> Self {
                self.item.args = args;
                self
            }

            /// Sets the injected parameters.
            #[must_use]
            pub const fn injects(mut self, injects: &'static [crate::arguments::Inject]) -> Self {
                self.item.injects = injects;
                self
            }

            /// Leaves it out of the warning about items that no builder registers.
            #[must_use]
            pub const fn unlisted(mut self) -> Self {
                self.item.unlisted = true;
                self
            }
        }

        impl std::fmt::Debug for $def {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($def))
                    .field("name", &self.item.name)
                    .field("at", &self.item.at)
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use descriptor_setters;

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
            location: Some(descriptor.at),
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
