//! What most servers use: `use mcp_runtime::prelude::*;`.

pub use crate::{
    Answer, Audio, Completion, Content, Context, Embedded, FromContext, Image, Json, ListedResource,
    LogLevel, Message, PromptResult, ProtocolError, ResourceContents, ResourceLink, ResultExt, ServerHandle,
    Subscription, Text, ToolDef, ToolError, ToolResult,
};
#[cfg(feature = "macros")]
pub use crate::{mcp_error, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type};
