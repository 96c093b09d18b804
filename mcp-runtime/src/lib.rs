//! Write an MCP (Model Context Protocol) server by annotating functions.
//!
//! ```no_run
//! use mcp_runtime::prelude::*;
//!
//! /// Greets a person.
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
mod arguments;
mod blocking;
mod cli;
mod client_request;
mod config;
mod connection;
mod content;
mod context;
mod crypto;
mod dispatch;
mod error;
mod events;
mod extensions;
mod invoke;
mod item;
mod jsonrpc;
mod prompt;
mod protocol;
mod resource;
mod schema;
mod server;
#[cfg_attr(not(feature = "skills"), expect(dead_code, reason = "only the feature reads any"))]
mod skill;
#[cfg(feature = "http")]
mod store;
mod sync;
mod task;
mod tool;
mod transport;

/// The JSON library that this crate is built on, for values and `json!` in tests and run-time schemas.
pub use serde_json;

#[doc(hidden)]
#[path = "macro_support.rs"]
pub mod __private;
pub mod prelude;
pub mod testing;

pub use arguments::{Completion, FromContext};
pub use client_request::{
    Answer, Answering, Elicit, ElicitUrl, Elicitable, Root, Roots, Sample, SampleArgs, SampleContext,
    Sampled, SampledBlock, ToolChoice, ToolUse, UrlElicitation,
};
pub use connection::{Caller, ClientInfo};
pub use content::{
    Annotations, Audio, Bytes, Content, Embedded, Icon, Image, IntoContent, Json, Message, ResourceContents,
    ResourceLink, Role, Text, Theme,
};
pub use context::{Amount, AskError, Cancelled, ClientFeature, Context, Log, Progress};
#[cfg(feature = "tracing")]
pub use context::{ClientLayer, client_layer};
pub use error::{IntoFailure, ResultExt, ToolError};
pub use jsonrpc::ProtocolError;
#[cfg(feature = "macros")]
pub use mcp_macros::{main, mcp_error, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type};
pub use prompt::{IntoMessage, IntoPromptResult, Prompt, PromptResult};
pub use protocol::{LogLevel, ParseNameError, Revision};
pub use resource::{IntoResourceResult, ListedResource, Resource, ResourceResult, Subscription};
#[cfg(feature = "http")]
pub use server::IntoPrincipal;
pub use server::{Error, Result, Server, ServerBuilder, ServerHandle, Service, Tools};
#[cfg(feature = "http")]
pub use store::{EventStore, StoredEvent};
pub use store::{MemoryTasks, SingleUse, Stored, TaskRecord, TaskStore};
pub use tool::{
    Hints, IntoToolResult, RuntimeTool as ToolDef, Structured, TaskMode, Tool, ToolBuilder, ToolCall,
    ToolResult,
};
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
