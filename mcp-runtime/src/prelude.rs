//! The names that most servers use: `use mcp_runtime::prelude::*;`.

pub use crate::{Context, Json, ResultExt, ToolError};
#[cfg(feature = "macros")]
pub use crate::{
    mcp_config, mcp_error, mcp_event, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type,
};
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use mcp_runtime_macros::Tool;
#[cfg(feature = "macros")]
pub use mcp_runtime_macros::mcp_rule;
