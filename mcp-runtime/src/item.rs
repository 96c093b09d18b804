//! What every kind of item has: its name and texts, its arguments, where it is in the user's source, and the problems
//! that keep a server with it from being built.

use std::{any::Any, fmt, sync::Arc};

use crate::{
    arguments::{AnyArg, Call, Inject, Outcome},
    content::{ContentWriter, Icon},
    context::ClientFeature,
    jsonrpc::Object,
    protocol::Revision,
};

/// A handler of results `R`.
pub(crate) type Handler<R> = fn(&mut Call<'_>) -> Outcome<R>;

/// Where an item stands in the user's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub(crate) module: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Location {
    /// A place in a file, and the module it is in.
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

/// What every kind of item has.
#[derive(Clone, Copy)]
pub(crate) struct Common {
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: Option<&'static str>,
    pub(crate) icons: &'static [Icon],
    /// JSON text of `_meta`.
    pub(crate) meta: Option<&'static str>,
    pub(crate) scopes: &'static [&'static str],
    /// What the client must be able to do.
    pub(crate) requires: &'static [ClientFeature],
    pub(crate) args: &'static [&'static dyn AnyArg],
    pub(crate) injects: &'static [Inject],
    pub(crate) at: Location,
    /// Not to be reported when no builder names it.
    pub(crate) unlisted: bool,
}

impl Common {
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

/// The setters that all three descriptors have.
macro_rules! common_setters {
    ($def:ident) => {
        impl $def {
            /// What stands where a mistake kept an item from being expanded, so that its registration is no second error.
            #[must_use]
            pub const fn invalid() -> Self {
                Self::new("invalid", crate::item::Location::new("", 0, 0, ""))
            }

            /// Sets the wire's `title`.
            #[must_use]
            pub const fn title(mut self, title: &'static str) -> Self {
                self.common.title = Some(title);
                self
            }

            /// Sets the wire's `description`.
            #[must_use]
            pub const fn description(mut self, text: &'static str) -> Self {
                self.common.description = Some(text);
                self
            }

            /// Sets the wire's `icons`.
            #[must_use]
            pub const fn icons(mut self, icons: &'static [crate::content::Icon]) -> Self {
                self.common.icons = icons;
                self
            }

            /// Sets the entry's `_meta`, as JSON text.
            #[must_use]
            pub const fn meta(mut self, json: &'static str) -> Self {
                self.common.meta = Some(json);
                self
            }

            /// Sets what a caller must have been granted.
            #[must_use]
            pub const fn scopes(mut self, scopes: &'static [&'static str]) -> Self {
                self.common.scopes = scopes;
                self
            }

            /// Sets what the client must be able to do.
            #[must_use]
            pub const fn requires(mut self, features: &'static [crate::context::ClientFeature]) -> Self {
                self.common.requires = features;
                self
            }

            /// Sets the arguments.
            #[must_use]
            pub const fn args(mut self, args: &'static [&'static dyn crate::arguments::AnyArg]) -> Self {
                self.common.args = args;
                self
            }

            /// Sets what is injected.
            #[must_use]
            pub const fn injects(mut self, injects: &'static [crate::arguments::Inject]) -> Self {
                self.common.injects = injects;
                self
            }

            /// Keeps it out of the report of items that no builder names.
            #[must_use]
            pub const fn unlisted(mut self) -> Self {
                self.common.unlisted = true;
                self
            }
        }

        impl std::fmt::Debug for $def {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($def))
                    .field("name", &self.common.name)
                    .field("at", &self.common.at)
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use common_setters;

/// An item's name, texts and conditions, however it was made.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemSpec {
    /// The wire's `name`, with the prefix of its mount.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) icons: Vec<Icon>,
    /// JSON text of `_meta`.
    pub(crate) meta: Option<String>,
    /// What a caller must have been granted.
    pub(crate) scopes: Vec<String>,
    /// What the client must be able to do.
    pub(crate) requires: Vec<ClientFeature>,
    /// Where its function is; run-time items have no location.
    pub(crate) location: Option<Location>,
}

impl ItemSpec {
    pub(crate) fn new(name: String, common: &Common) -> Self {
        Self {
            name,
            title: common.title.map(str::to_owned),
            description: common.description.map(str::to_owned),
            icons: common.icons.to_vec(),
            meta: common.meta.map(str::to_owned),
            scopes: common.scopes.iter().map(|&scope| scope.to_owned()).collect(),
            requires: common.requires.to_vec(),
            location: Some(common.at),
        }
    }

    /// A problem with this item, at its location.
    pub(crate) fn problem(&self, text: impl fmt::Display) -> Problem {
        match self.location {
            Some(at) => Problem::at(at, text),
            None => Problem::new(text.to_string()),
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

/// Something that keeps a server from being built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(String);

impl Problem {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn at(at: Location, text: impl fmt::Display) -> Self {
        Self(format!("{text}\n  --> {at}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
