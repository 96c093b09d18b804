//! An instance of a template, as `resources/list` shows it. Functions that `list = path` names return these; the
//! registry writes their entries.

use serde_json::{Map, Value};

use crate::{
    arguments::{
        BoxFuture, Inject,
        named::{Async, Named, Sync, Values, any_number_of_values, elsewhere},
    },
    content::{Annotations, Icon, impl_annotation_setters},
    context::Context,
    error::Failure,
};

/// An instance of a template, as `resources/list` shows it; what is not set is the template's.
///
/// ```
/// use mcp_runtime::prelude::*;
///
/// fn all() -> Vec<ListedResource> {
///     let june = ListedResource::new("notes://june").title("June").icon("https://example.com/sun.png");
///     vec![june.last_modified("2026-06-30T12:00:00Z").meta("org.example/pages", 4)]
/// }
///
/// /// The notes of a month.
/// #[mcp_resource(uri = "notes://{month}", list = all)]
/// fn notes(month: String) -> String {
///     format!("what happened in {month}")
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListedResource {
    /// The wire's `uri`.
    pub uri: String,
    /// The wire's `name`; the URI if not set.
    pub name: Option<String>,
    /// The wire's `title`.
    pub title: Option<String>,
    /// The wire's `description`; the template's if not set.
    pub description: Option<String>,
    /// The wire's `mimeType`; the template's if not set.
    pub mime: Option<String>,
    /// The wire's `size`, in bytes.
    pub size: Option<u64>,
    /// The wire's `icons`; the template's if there are none.
    pub icons: Vec<Icon>,
    /// The wire's `annotations`; each that is not set is the template's.
    pub annotations: Annotations,
    /// The wire's `_meta`, besides the template's.
    pub meta: Map<String, Value>,
}

impl ListedResource {
    /// The instance at `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
            title: None,
            description: None,
            mime: None,
            size: None,
            icons: Vec::new(),
            annotations: Annotations::default(),
            meta: Map::new(),
        }
    }

    /// Sets the wire's `name`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the wire's `title`.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the wire's `description`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the wire's `mimeType`.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Sets the wire's `size`, in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Adds an icon: a URL, or an [`Icon`]; clients before 2025-11-25 do not see it.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.icons.push(icon.into());
        self
    }

    fn annotations(&mut self) -> &mut Annotations {
        &mut self.annotations
    }

    /// Adds a member to the entry's `_meta`; clients before 2025-06-18 do not see it.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }
}

impl_annotation_setters!(ListedResource);

impl From<String> for ListedResource {
    fn from(uri: String) -> Self {
        Self::new(uri)
    }
}

impl From<&str> for ListedResource {
    fn from(uri: &str) -> Self {
        Self::new(uri)
    }
}

/// A lister behind its type; without a call it only says what it takes.
pub(crate) type ListFn = fn(Option<Context>) -> Named<BoxFuture<Result<Vec<ListedResource>, Failure>>>;

/// Functions that `list = path` can name; `M` tells their shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot list the instances of a template",
    label = "not a lister",
    note = "write `fn() -> Vec<ListedResource>`, sync or async; parameters `&State` are injected"
)]
pub trait Lister<M>: Send + 'static {
    #[doc(hidden)]
    fn takes() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>>;
}

macro_rules! shapes {
    ($($(($s:ident $v:ident))*;)*) => {$(
        impl<F, R, I, $($s: ?Sized + 'static),*> Lister<(Sync, R, $(fn(&$s),)*)> for F
        where
            F: Fn($(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<ListedResource>,
        {
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>> {
                Box::pin(async move {
                    let values = Values::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    Ok(self($($v),*).into_iter().map(Into::into).collect())
                })
            }
        }

        impl<F, R, I, $($s: ?Sized + 'static),*> Lister<(Async, R, $(fn(&$s),)*)> for F
        where
            F: AsyncFn($(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<ListedResource>,
        {
            fn takes() -> Vec<Inject> {
                vec![$(Inject::taken::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>> {
                elsewhere(move |thread| {
                    let values = Values::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    let all = thread.wait(self($($v),*))?;
                    Ok(all.into_iter().map(Into::into).collect())
                })
            }
        }
    )*};
}
any_number_of_values!(shapes);

/// Runs the lister that an attribute names.
pub fn list<M, F: Lister<M>>(
    function: F,
    call: Option<Context>,
) -> Named<BoxFuture<Result<Vec<ListedResource>, Failure>>> {
    match call {
        Some(context) => Named::gave(function.run(context)),
        None => Named::takes(F::takes()),
    }
}
