//! Prompts: their description by an attribute or a builder, their return types, their entries in `prompts/list`, and the
//! responses of their methods.

mod builder;
mod capability;
mod entry;
mod methods;
pub(crate) mod output;
pub(crate) mod spec;

pub use builder::{PromptArgument, PromptBuilder, PromptCall, PromptDef};
pub(crate) use capability::Prompts;
use entry::PromptEntry;
pub use output::PromptResult;
pub(crate) use output::write_prompt_result;
pub(crate) use spec::PromptDescriptor;

use crate::core::item::Typed;

/// The marker of an annotated prompt; name it in `.prompt::<name>()`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    label = "not annotated with `#[mcp_prompt]`",
    note = "a method is registered with its service: `.service(value)`"
)]
pub trait Prompt {
    #[doc(hidden)]
    const DESCRIPTOR: &'static PromptDescriptor;
}

#[diagnostic::do_not_recommend]
impl<T: Prompt> Typed<PromptDescriptor> for T {
    const TYPED: &'static PromptDescriptor = T::DESCRIPTOR;
}
