//! Resources and templates: their description by an attribute or a builder, their return types, their URIs, their entries
//! in `resources/list` or `resources/templates/list`, and the responses of their methods.

mod builder;
mod capability;
mod entry;
pub(crate) mod listed;
mod methods;
pub(crate) mod output;
pub(crate) mod spec;
pub(crate) mod subscribe_fn;
mod subscribers;
mod template;
mod template_syntax;
mod ui_pages;
mod updates;

pub use builder::{ResourceBuilder, ResourceCall, ResourceDef};
pub(crate) use capability::ResourceSource;
pub(crate) use capability::Resources;
pub(crate) use entry::ResourceEntry;
pub(crate) use listed::{DynList, ListFn};
pub use listed::{ListedPage, ListedResource, PageRequest};
pub(crate) use methods::{ReadResult, ReadSource};
pub use output::ResourceResult;
pub(crate) use output::write_resource_result;
pub(crate) use spec::{ResourceDescriptor, ResourceSpec};
pub use subscribe_fn::Subscription;
pub(crate) use subscribe_fn::{DynSubscribe, SubscribeFn};
pub(crate) use template::Template;
// the fuzz target of the client's expansion leaves out what is not a template of a server
pub(crate) use template::UriVariables;
pub(crate) use template::percent_decode;
#[cfg(all(any(test, feature = "_fuzzing"), feature = "client"))]
pub(crate) use template_syntax::parse_variables;

use crate::core::item::Typed;

/// The marker of an annotated resource; name it in `.resource::<name>()`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "not annotated with `#[mcp_resource]`",
    note = "a method is registered with its service: `.service(value)`"
)]
pub trait Resource {
    #[doc(hidden)]
    const DESCRIPTOR: &'static ResourceDescriptor;
}

#[diagnostic::do_not_recommend]
impl<T: Resource> Typed<ResourceDescriptor> for T {
    const TYPED: &'static ResourceDescriptor = T::DESCRIPTOR;
}
