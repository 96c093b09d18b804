//! Descriptors of tools, resources and prompts: `'static` tables of function pointers that generated code fills in,
//! and tools made at run time. The registry reads them; nothing behind them is generic over users' types.

mod dynamic;
mod prompt;
mod resource;
mod tool;

pub use dynamic::{Tool as RuntimeTool, ToolBuilder, ToolCall};
pub use prompt::PromptDef;
pub use resource::ResourceDef;
pub use tool::{Hints, OutputType, TaskMode, ToolDef};

use crate::content::Icon;
use crate::context::ClientFeature;
use crate::extract::{AnyArg, Call, Inject, Outcome};

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

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    const fn new(name: &'static str, at: Location) -> Self {
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
                Self::new("invalid", crate::def::Location::new("", 0, 0, ""))
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
            pub const fn args(mut self, args: &'static [&'static dyn crate::extract::AnyArg]) -> Self {
                self.common.args = args;
                self
            }

            /// Sets what is injected.
            #[must_use]
            pub const fn injects(mut self, injects: &'static [crate::extract::Inject]) -> Self {
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
use common_setters;

/// The marker of an annotated tool; name it in `.tool::<name>()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not annotated with `#[mcp_tool]`",
    note = "put `#[mcp_tool]` on the function, and import it by name"
)]
pub trait Tool {
    #[doc(hidden)]
    const DEF: &'static ToolDef;
}

/// The marker of an annotated resource; name it in `.resource::<name>()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "not annotated with `#[mcp_resource]`"
)]
pub trait Resource {
    #[doc(hidden)]
    const DEF: &'static ResourceDef;
}

/// The marker of an annotated prompt; name it in `.prompt::<name>()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    label = "not annotated with `#[mcp_prompt]`"
)]
pub trait Prompt {
    #[doc(hidden)]
    const DEF: &'static PromptDef;
}

/// A type whose annotated methods are tools, resources and prompts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a service",
    label = "no `impl` block of it is annotated with `#[mcp_service]`"
)]
pub trait Service: Sized + Send + Sync + 'static {
    #[doc(hidden)]
    const ITEMS: &'static [Linked];
}

/// One annotated item, as the linker or a service hands it over.
#[derive(Debug, Clone, Copy)]
pub enum Linked {
    /// A tool.
    Tool(&'static ToolDef),
    /// A resource or template.
    Resource(&'static ResourceDef),
    /// A prompt.
    Prompt(&'static PromptDef),
}

inventory::collect!(Linked);

impl Linked {
    pub(crate) fn common(&self) -> &'static Common {
        match self {
            Self::Tool(def) => &def.common,
            Self::Resource(def) => &def.common,
            Self::Prompt(def) => &def.common,
        }
    }

    /// The functions that its attributes name, by option, and what each takes.
    pub(crate) fn named(&self) -> Vec<(&'static str, Vec<Inject>)> {
        let completers = self.common().args.iter().filter_map(|arg| arg.completer());
        let mut named: Vec<_> = completers.map(|complete| ("complete", complete(None).takes)).collect();
        if let Self::Resource(def) = self {
            named.extend(def.list.map(|list| ("list", list(None).takes)));
            named.extend(def.subscribe.map(|check| ("subscribe", check(None).takes)));
        }
        named
    }

    /// Tells items apart: their place does not, since one `macro_rules!` call can make several.
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
        all.sort_by_key(|item| {
            let Common { at, name, .. } = item.common();
            (at.krate(), at.file, at.line, at.column, *name)
        });
        all
    }
}
