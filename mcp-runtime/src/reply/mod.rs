//! From what a user's function returns to a result of the protocol: one trait for each of tools, resources and
//! prompts, and the errors. Generated code binds them at the return type, so that their messages are what users read.

mod error;
mod prompt;
mod resource;
mod tool;

pub(crate) use error::Kind as ErrorKind;
pub use error::{Failure, IntoFailure, ResultExt, ToolError};
pub use prompt::{IntoMessage, IntoPromptResult};
pub use resource::IntoResourceResult;
pub use tool::{IntoToolResult, Structured};

/// A value sent as JSON: `structuredContent` and text from a tool, `application/json` text from a resource.
///
/// The schema of `T` is published as the tool's `outputSchema`.
///
/// See [structured content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#structured-content).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);
