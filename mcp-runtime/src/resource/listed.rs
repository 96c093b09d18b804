//! Instances of a template in `resources/list`, and the functions that `list = path` names, which return them.

use serde_json::{Map, Value};

use crate::{
    arguments::{
        BoxFuture, Inject,
        attribute_fn::{Async, AttributeFn, InjectedValues, Sync, for_each_arity, run_on_blocking_thread},
    },
    content::{Annotations, Icon, impl_annotation_setters},
    context::Context,
    error::Failure,
};

/// An instance of a template, as `resources/list` shows it; what is not set is inherited from the template.
///
/// ```
/// use mcp_runtime::{prelude::*, resource::ListedResource};
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
    /// The wire's `icons`; the template's if empty.
    pub icons: Vec<Icon>,
    /// The wire's `annotations`; each one that is not set is inherited from the template.
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

    fn annotations_mut(&mut self) -> &mut Annotations {
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

/// A type-erased lister; called with `None`, it only reports what it injects.
pub(crate) type ListFn = fn(Option<Context>) -> AttributeFn<BoxFuture<Result<Vec<ListedResource>, Failure>>>;

/// Functions that `list = path` can name; `M` distinguishes their signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot list the instances of a template",
    label = "not a lister",
    note = "write `fn() -> Vec<ListedResource>`, sync or async; parameters `&State` are injected"
)]
pub trait Lister<M>: Send + 'static {
    #[doc(hidden)]
    fn injects() -> Vec<Inject>;
    #[doc(hidden)]
    fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>>;
}

macro_rules! impl_lister {
    ($($(($s:ident $v:ident))*;)*) => {$(
        impl<F, R, I, $($s: ?Sized + 'static),*> Lister<(Sync, R, $(fn(&$s),)*)> for F
        where
            F: Fn($(&$s),*) -> R + Send + 'static,
            R: IntoIterator<Item = I>,
            I: Into<ListedResource>,
        {
            fn injects() -> Vec<Inject> {
                vec![$(Inject::of_attribute_fn::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>> {
                Box::pin(async move {
                    let values = InjectedValues::new(context);
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
            fn injects() -> Vec<Inject> {
                vec![$(Inject::of_attribute_fn::<$s>()),*]
            }

            #[allow(unused_variables)]
            fn run(self, context: Context) -> BoxFuture<Result<Vec<ListedResource>, Failure>> {
                run_on_blocking_thread(move |thread| {
                    let values = InjectedValues::new(context);
                    $(let $v = values.find::<$s>()?;)*
                    let all = thread.block_on(self($($v),*))?;
                    Ok(all.into_iter().map(Into::into).collect())
                })
            }
        }
    )*};
}
for_each_arity!(impl_lister);

/// Runs the lister that an attribute names, or reports what it injects.
pub fn list<M, F: Lister<M>>(
    function: F,
    call: Option<Context>,
) -> AttributeFn<BoxFuture<Result<Vec<ListedResource>, Failure>>> {
    match call {
        Some(context) => AttributeFn::with_outcome(function.run(context)),
        None => AttributeFn::with_injects(F::injects()),
    }
}
