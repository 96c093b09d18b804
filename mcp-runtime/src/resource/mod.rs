//! Resources and templates: how an attribute describes one, what it may return, its URIs, and its entry in
//! `resources/list` or `resources/templates/list`.

mod entry;
mod listed;
mod output;
mod spec;
mod subscribe;
mod template;

pub(crate) use entry::{ResourceEntry, uri_with_prefix};
pub(crate) use listed::ListFn;
pub use listed::{ListedResource, list};
pub(crate) use output::write_resource_result;
pub use output::{AnyResourceOutput, IntoResourceResult, ResourceOutput, ResourceResult, resource_output};
pub use spec::ResourceDescriptor;
pub(crate) use subscribe::SubscribeFn;
pub use subscribe::{Subscription, subscribe};
pub(crate) use template::{UriVariables, percent_decode};

/// The marker of an annotated resource; name it in `.resource::<name>()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "not annotated with `#[mcp_resource]`"
)]
pub trait Resource {
    #[doc(hidden)]
    const DESCRIPTOR: &'static ResourceDescriptor;
}
