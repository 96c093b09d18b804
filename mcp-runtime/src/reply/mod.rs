//! The results of tools, resources and prompts, and what a user's function may return in their place: one trait for
//! each of the three, and the errors. Generated code binds them at the return type, so that their messages are what users read.

mod error;
mod prompt;
mod resource;
mod tool;

pub(crate) use error::Kind as ErrorKind;
pub use error::{Failure, IntoFailure, ResultExt, ToolError};
pub(crate) use prompt::prompt_result;
pub use prompt::{AnyPromptOut, IntoMessage, IntoPromptResult, PromptOut, PromptResult, prompt_out};
pub(crate) use resource::resource_result;
pub use resource::{AnyResourceOut, IntoResourceResult, ResourceOut, ResourceResult, resource_out};
pub(crate) use tool::tool_result;
pub use tool::{AnyToolOut, IntoToolResult, Structured, ToolOut, ToolResult, tool_out};

/// A value sent as JSON: `structuredContent` and text from a tool, `application/json` text from a resource.
///
/// The schema of `T` is published as the tool's `outputSchema`.
///
/// See [structured content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#structured-content).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);
