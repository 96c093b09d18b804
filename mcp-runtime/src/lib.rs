//! Write an MCP (Model Context Protocol) server by annotating functions.
//!
//! ```no_run
//! use mcp_runtime::prelude::*;
//!
//! /// Greets somebody.
//! #[mcp_tool]
//! fn greet(
//!     /// Whom to greet
//!     name: String,
//! ) -> String {
//!     format!("Hello, {name}!")
//! }
//!
//! fn main() -> mcp_runtime::Result<()> {
//!     mcp_runtime::server!().discover().run()
//! }
//! ```

mod admission;
mod ask;
mod blocking;
mod cli;
mod connection;
mod content;
mod context;
mod def;
mod dispatch;
mod extensions;
mod extract;
mod invoke;
mod jsonrpc;
mod protocol;
mod registry;
mod reply;
mod schema;
mod seal;
mod server;
#[cfg_attr(not(feature = "skills"), expect(dead_code, reason = "only the feature reads any"))]
mod skill;
mod subscribe;
mod task;
mod transport;

/// The JSON library that this crate is built on, for values and `json!` in tests and run-time schemas.
pub use serde_json;

#[doc(hidden)]
pub mod __private;
pub mod prelude;
pub mod testing;

pub use ask::{
    Answer, Answering, Elicit, ElicitUrl, Elicitable, Root, Roots, Sample, SampleArgs, SampleContext,
    Sampled, SampledBlock, ToolChoice, ToolUse, UrlElicitation,
};
pub use connection::{Caller, ClientInfo};
pub use content::{
    Annotations, Audio, Bytes, Content, Embedded, Icon, Image, IntoContent, Message, ResourceContents,
    ResourceLink, Role, Text, Theme,
};
pub use context::{Amount, AskError, Cancelled, ClientFeature, Context, Log, Progress, SingleUse};
#[cfg(feature = "tracing")]
pub use context::{ClientLayer, client_layer};
pub use def::{
    Hints, Prompt, Resource, RuntimeTool as ToolDef, Service, TaskMode, Tool, ToolBuilder, ToolCall,
};
pub use extract::{Completion, FromContext, ListedResource, Subscription};
pub use jsonrpc::ProtocolError;
#[cfg(feature = "macros")]
pub use mcp_macros::{main, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type};
pub use protocol::{LogLevel, Revision};
pub use reply::{
    IntoFailure, IntoMessage, IntoPromptResult, IntoResourceResult, IntoToolResult, Json, PromptResult,
    ResourceResult, ResultExt, Structured, ToolError, ToolResult,
};
pub use server::{Error, Result, Server, ServerBuilder, ServerHandle, Tools};
#[cfg(feature = "http")]
pub use server::{EventStore, IntoPrincipal, StoredEvent};
pub use task::{MemoryTasks, Stored, TaskRecord, TaskStore};
#[cfg(feature = "http")]
pub use transport::http::{HttpService, ResponseBody};

/// Starts a server with the name and version of the calling crate; see [`ServerBuilder`].
#[macro_export]
macro_rules! server {
    () => {
        $crate::ServerBuilder::new(
            ::core::env!("CARGO_PKG_NAME"),
            ::core::env!("CARGO_PKG_VERSION"),
            ::core::module_path!(),
        )
    };
}
