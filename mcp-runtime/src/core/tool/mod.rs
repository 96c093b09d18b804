//! Tools: their description by an attribute or a builder, their return types, and their entries in `tools/list`.

mod added;
mod builder;
mod entry;
mod forward;
mod header_param;
pub(crate) mod output;
mod result_limit;
mod schema;
pub(crate) mod spec;
mod view;

pub use builder::{ToolBuilder, ToolCall, ToolDef};
pub(crate) use entry::ToolEntry;
pub(crate) use forward::ForwardFn;
pub(crate) use header_param::header_params;
pub(crate) use output::Structured;
pub(crate) use output::ToolResult;
pub(crate) use output::write_tool_result;
pub(crate) use schema::InputSchema;
pub(crate) use schema::conforming_output;
pub(crate) use schema::input_schema;
pub use spec::Hints;
#[cfg(feature = "tasks")]
pub use spec::TaskMode;
pub(crate) use spec::ToolDescriptor;
pub(crate) use spec::ToolSpec;
pub(crate) use view::PinnedRegistry;
pub use view::{ListSize, Tools};

use super::item::Typed;
#[cfg(feature = "macros")]
pub use mcp_runtime_macros::mcp_rule;

/// The marker of an annotated tool; name it in `.tool::<name>()`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not annotated with `#[mcp_tool]`",
    note = "put `#[mcp_tool]` on the function, and import it by name",
    note = "a method is registered with its service: `.service(value)`"
)]
pub trait Tool {
    #[doc(hidden)]
    const DESCRIPTOR: &'static ToolDescriptor;
}

#[diagnostic::do_not_recommend]
impl<T: Tool> Typed<ToolDescriptor> for T {
    const TYPED: &'static ToolDescriptor = T::DESCRIPTOR;
}
