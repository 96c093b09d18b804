//! Instances of a template in `resources/list`, in pages, and the functions that `list = path` names, which return them.

use std::sync::Arc;

use crate::core::{
    arguments::{
        BoxFuture,
        attribute_fn::{
            AttributeFn, CanBlock, FnKind, InjectedFn, InjectedValues, IntoReturned, Iterated, Itself,
        },
    },
    callback::Callback,
    content::ResourceLink,
    context::Context,
    error::Failure,
};

/// An instance of a template, as `resources/list` shows it: the URI if it has no name, and the description, the MIME type and
/// the icons of the template, each of its annotations and of the members of its `_meta` if those are not set.
///
/// ```
/// use mcp_runtime::{prelude::*, resource::ListedResource};
///
/// fn all() -> Vec<ListedResource> {
///     let june = ListedResource::new("notes://june", "june").icon("https://example.com/sun.png");
///     let june = june.annotated(|hints| hints.last_modified("2026-06-30T12:00:00Z"));
///     vec![june.meta("org.example/pages", 4)]
/// }
///
/// /// The notes of a month.
/// #[mcp_resource(uri = "notes://{month}", list = all)]
/// fn notes(month: String) -> String {
///     format!("what happened in {month}")
/// }
/// ```
pub type ListedResource = ResourceLink;

/// The page of instances that a client requests: a parameter `&PageRequest` of a `list` function.
///
/// Without one, a `list` function returns all instances at once, and every page of a client's list calls it again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// The [`ListedPage::next_cursor`] that the function returned with the page before; `None` for the first page.
    ///
    /// Clients cannot read or change it: on the wire, it is inside an encrypted cursor.
    pub cursor: Option<String>,
    /// How many instances the client's page has room for.
    ///
    /// The function may return fewer, or more: then it is called again with the same cursor, for the rest.
    pub limit: usize,
}

/// A page of a template's instances, as a `list` function returns it.
///
/// ```
/// use mcp_runtime::{prelude::*, resource::{ListedPage, PageRequest}};
/// use std::collections::BTreeSet;
///
/// struct Notes(BTreeSet<String>);
///
/// fn all(page: &PageRequest, notes: &Notes) -> ListedPage {
///     let last = page.cursor.as_ref();
///     let mut rest = notes.0.iter().filter(|name| last.is_none_or(|last| *name > last));
///     let names: Vec<_> = rest.by_ref().take(page.limit).collect();
///     let next = rest.next().and(names.last()).map(|name| name.to_string());
///     ListedPage::new(names.iter().map(|name| format!("note://{name}"))).next_cursor(next)
/// }
///
/// /// One note.
/// #[mcp_resource(uri = "note://{name}", list = all)]
/// fn note(name: String) -> String {
///     name
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ListedPage {
    /// The instances of this page.
    pub instances: Vec<ListedResource>,
    /// Where the next page begins; `None` on the last page.
    pub next_cursor: Option<String>,
}

impl ListedPage {
    /// The longest `next_cursor`, in bytes.
    pub(crate) const MAX_CURSOR: usize = 1024;

    /// A page with these instances, which is the last until it has a next cursor.
    pub fn new<I: Into<ListedResource>>(instances: impl IntoIterator<Item = I>) -> Self {
        Self { instances: instances.into_iter().map(Into::into).collect(), next_cursor: None }
    }

    /// Sets where the next page begins, in any text of up to 1024 bytes: a key, an offset, another server's cursor.
    #[must_use]
    pub fn next_cursor(mut self, cursor: impl Into<Option<String>>) -> Self {
        self.next_cursor = cursor.into();
        self
    }
}

/// Lists the instances of a template.
pub(crate) type DynList =
    dyn Fn(PageRequest, Context) -> BoxFuture<Result<ListedPage, Failure>> + Send + Sync;

/// A lister that an attribute names.
pub(crate) type ListFn = fn() -> AttributeFn<DynList>;

/// Functions that `list = path` can name; `M` distinguishes their signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot list the instances of a template",
    label = "not a lister",
    note = "write `fn() -> Vec<ListedResource>`, or a `Result` of it; parameters `&State` are injected",
    note = "for pages, write `fn(&PageRequest) -> ListedPage`",
    note = "the future of an `async fn` must be `Send`"
)]
pub trait Lister<M>: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    fn erase(self, blocking: bool) -> AttributeFn<DynList>;
}

#[diagnostic::do_not_recommend]
impl<F, K, N, A> Lister<(K, N, A)> for F
where
    F: for<'a> InjectedFn<'a, ListedPage, K, N, A>,
    K: FnKind,
    N: 'static,
    A: 'static,
{
    fn erase(self, blocking: bool) -> AttributeFn<DynList> {
        let mut injects = F::injects();
        injects.retain(|inject| !inject.is::<PageRequest>());
        let call = Arc::new(move |page: PageRequest, context: Context| {
            K::run(self, InjectedValues::new(context, page), blocking)
        });
        AttributeFn { injects, call: Callback(call) }
    }
}

impl<R: IntoIterator<Item: Into<ListedResource>>> IntoReturned<ListedPage, Iterated> for R {
    fn into_returned(self) -> Result<ListedPage, Failure> {
        Ok(ListedPage::new(self))
    }
}

impl IntoReturned<Self, Itself> for ListedPage {
    fn into_returned(self) -> Result<Self, Failure> {
        Ok(self)
    }
}

/// The lister that an attribute names; if it is plain, `blocking` runs it on a thread.
pub fn list<M, F: Lister<M>>(function: F, blocking: bool) -> AttributeFn<DynList> {
    function.erase(blocking)
}

/// The plain lister that an attribute names in `blocking(..)`.
pub fn list_blocking<K: CanBlock, N, A, F: Lister<(K, N, A)>>(function: F) -> AttributeFn<DynList> {
    function.erase(true)
}
