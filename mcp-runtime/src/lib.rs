#![doc = include_str!("guide_links.txt")]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod admission;
mod arguments;
pub mod audit;
pub mod auth;
mod blocking;
mod capability;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "client")]
pub mod client;
// public without the feature too, though nothing in it is: rustc then names the feature where a program uses an item of it
#[cfg(not(feature = "client"))]
#[doc(hidden)]
pub mod client;
pub mod client_request;
pub mod config;
mod connection;
pub mod content;
pub mod context;
mod crypto;
mod dispatch;
mod error;
mod events;
mod extensions;
#[cfg(feature = "_fetch")]
mod fetch;
mod gate;
#[cfg(all(doc, not(doctest)))]
pub mod guide;
mod invoke;
mod item;
mod item_output;
mod jsonrpc;
pub mod layer;
mod misplaced;
pub mod prelude;
mod protocol;
mod reason;
mod schema;
mod server;
mod sort;
mod spawn;
pub mod store;
mod sync;
mod telemetry;
#[cfg(any(feature = "testing", test))]
pub mod testing;
pub mod tool;
mod transport;

// there without the feature too, so that rustc names the feature where a program uses an item of it
#[cfg(not(feature = "skills"))]
#[doc(hidden)]
pub mod skill {
    #[cfg(feature = "skills")]
    pub use crate::capability::skills::SkillsDir;
}

#[doc(hidden)]
#[path = "macro_support.rs"]
pub mod __private;

/// The HTTP transport in programs that have a server of their own: a tower service, its body type, and the caller that
/// middleware has authenticated.
#[cfg(feature = "http")]
pub mod http {
    pub use crate::{
        config::IntoPrincipal,
        transport::http::{HttpService, ResponseBody},
    };
}

/// Changes of items as they are registered: [`ServerBuilder::transform`].
pub mod transform {
    pub use crate::server::{ItemChanges, Transformed};
}

pub use arguments::{Completion, FromContext};
#[cfg(feature = "skills")]
pub use capability::skills as skill;
pub use capability::{prompts as prompt, resources as resource};
pub use connection::Principal;
pub use content::Json;
pub use context::Context;
pub use error::{ResultExt, ToolError};
pub use jsonrpc::ProtocolError;
#[cfg(feature = "macros")]
pub use mcp_runtime_macros::{main, mcp_error, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type};
pub use protocol::Revision;
pub use server::{Error, ErrorKind, Result, Server, ServerBuilder, ServerHandle};
pub use tool::ToolResult;

/// The JSON library that this crate is built on, for values and `json!` in tests and run-time schemas.
pub use serde_json;

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
    ($($argument:tt)+) => {
        ::core::compile_error!(
            "`server!()` takes name and version from Cargo.toml\nset others with `.info(|info| info.name(\"..\"))`"
        )
    };
}
