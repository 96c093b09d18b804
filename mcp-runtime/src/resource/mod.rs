//! Resources and templates: how an attribute or a builder describes one, what it may return, its URIs, and its entry in
//! `resources/list` or `resources/templates/list`.

mod builder;
mod entry;
pub(crate) mod listed;
pub(crate) mod output;
pub(crate) mod spec;
pub(crate) mod subscribe;
mod template;
mod template_syntax;

pub use builder::{ResourceBuilder, ResourceCall, ResourceDef};
pub(crate) use entry::{ResourceEntry, uri_with_prefix};
pub(crate) use listed::{DynList, ListFn};
pub use listed::{ListedPage, ListedResource, PageRequest};
pub(crate) use output::AnyResourceOutput;
pub(crate) use output::write_resource_result;
pub use output::{IntoResourceResult, ResourceResult};
pub(crate) use spec::{ResourceDescriptor, ResourceSpec};
pub use subscribe::Subscription;
pub(crate) use subscribe::{DynSubscribe, SubscribeFn};
#[cfg(feature = "client")]
pub(crate) use template::Template;
pub(crate) use template::{UriVariables, percent_decode};

/// The marker of an annotated resource; name it in `.resource::<name>()`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "not annotated with `#[mcp_resource]`"
)]
pub trait Resource {
    #[doc(hidden)]
    const DESCRIPTOR: &'static ResourceDescriptor;
}
