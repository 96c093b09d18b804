//! Tools: how an attribute or a builder describes one, what it may return, and its entry in `tools/list`.

mod builder;
mod entry;
mod header_param;
mod output;
mod schema;
mod spec;

pub(crate) use builder::DynHandler;
pub use builder::{RuntimeTool, ToolBuilder, ToolCall};
pub(crate) use entry::{ToolCatalog, ToolEntry, ToolHandler};
pub(crate) use output::write_tool_result;
pub use output::{AnyToolOutput, IntoToolResult, Structured, ToolOutput, ToolResult, tool_output};
pub(crate) use spec::ToolSpec;
pub use spec::{Hints, OutputType, TaskMode, ToolDescriptor};

/// The marker of an annotated tool; name it in `.tool::<name>()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not annotated with `#[mcp_tool]`",
    note = "put `#[mcp_tool]` on the function, and import it by name"
)]
pub trait Tool {
    #[doc(hidden)]
    const DESCRIPTOR: &'static ToolDescriptor;
}
