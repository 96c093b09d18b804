#![doc = include_str!("guide_links.txt")]
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// some functions serve one feature only: unused code is looked for with all features
#![cfg_attr(not(feature = "_all"), allow(dead_code, unreachable_pub, unused_imports, unused_macros))]

pub mod auth;
mod capability;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "client")]
pub mod client;
// public without the feature too, though nothing in it is: rustc then names the feature where a program uses an item of it
#[cfg(not(feature = "client"))]
#[doc(hidden)]
pub mod client;
mod core;
#[cfg(any(test, feature = "_fuzzing"))]
#[doc(hidden)]
#[path = "tests/fuzzing/mod.rs"]
pub mod fuzzing;
#[cfg(all(doc, not(doctest)))]
pub mod guide;
/// The `install` command, which adds the server to the user's MCP clients.
#[cfg(feature = "install")]
pub mod install;
#[cfg(not(feature = "_all"))]
mod missing_features;
mod observers;
pub mod prelude;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "_tls")]
use mcp_runtime_fetch as fetch;
use mcp_runtime_schema as schema;
#[cfg(feature = "config")]
mod settings;
#[cfg(any(feature = "testing", test))]
pub mod testing;
#[cfg(test)]
mod tests;
mod transport;

/// The items that `mcp-dev` shares with the command line of a server and with the client; they change without notice.
#[doc(hidden)]
#[cfg(any(feature = "cli", feature = "client", feature = "install", feature = "testing"))]
pub mod __dev {
    #[cfg(feature = "cli")]
    pub use crate::cli::{answer_question, content_value, list_text, print_result};
    #[cfg(any(feature = "cli", feature = "client", feature = "testing"))]
    pub use crate::client::exchange::ListedKind;
    #[cfg(feature = "client")]
    pub use crate::client::link::child_process::{ChildProcess, signalled};
    #[cfg(any(feature = "contract", feature = "install"))]
    pub use crate::core::project_file::{read as read_file, replace as replace_file, resolve, resolve_in};
    #[cfg(any(feature = "cli", feature = "client"))]
    pub use crate::core::visible_text::{visible, visible_json};

    /// A name that cannot be guessed: 128 bits as 32 hexadecimal digits.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    #[cfg(feature = "install")]
    pub fn random_id() -> std::io::Result<String> {
        crate::core::crypto::random_id().map_err(std::io::Error::other)
    }

    /// Whether a variable of this name is probably secret.
    #[cfg(feature = "install")]
    #[must_use]
    pub fn sounds_secret(name: &str) -> bool {
        crate::install::sounds_secret(name)
    }
}

#[doc(hidden)]
#[path = "macro_support/mod.rs"]
pub mod __private;

/// The HTTP transport in programs that have a server of their own: a tower service, its body type, and the caller that
/// middleware has authenticated; and what [routes](addition::Addition::route) of additions have.
#[cfg(feature = "http")]
pub mod http {
    pub use crate::{
        core::config::http::IntoPrincipal,
        transport::http::{ClientAddress, HttpService, ResponseBody, RouteBody, RoutePolicy},
    };
}

/// Every option of a server as plain data, each with its default, and secret values of settings.
///
/// [`ServerBuilder`] has one method for each group of options, which passes the group to a closure:
///
/// | method | group |
/// |---|---|
/// | `.info(..)` | [`ServerInfo`](config::ServerInfo): what the server says about itself, and instructions for models |
/// | `.limits(..)` | [`Limits`](config::Limits): rates, times, sizes and numbers, for all transports |
/// | `.lists(..)` | [`ListOptions`](config::ListOptions): pages, caching, and who sees what |
/// | `.stdio(..)`, `.http(..)` | [`StdioOptions`](config::StdioOptions), `HttpOptions`: those of one transport |
/// | `.tasks(..)` | `TaskOptions`: calls that become tasks, with the feature `tasks` |
/// | `.stores(..)` | [`Stores`](config::Stores): keys, and stores that replicas share |
/// | `.telemetry(..)` | [`TelemetryOptions`](config::TelemetryOptions): spans, metrics, and log messages to clients |
///
/// ```
/// use std::time::Duration;
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!()
///     .limits(|limits| limits.max_in_flight(64).shutdown_timeout(Duration::from_secs(5)))
///     .http(|http| http.allowed_hosts(["mcp.example.com"]).max_body(1 << 20))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub mod config {
    #[cfg(feature = "tasks")]
    #[doc(inline)]
    pub use crate::capability::tasks::TaskOptions;
    #[doc(inline)]
    pub use crate::core::config::*;
    #[cfg(feature = "config")]
    pub use crate::settings::{Config, Secret};
}

/// The parts of a request that its [`Context`] gives: the client, progress, and log messages.
pub mod context {
    #[cfg(feature = "tracing")]
    pub use crate::core::context::client_layer;
    pub use crate::core::context::{ClientInfo, Log, LogLevel, ParseNameError, Progress};
}

/// State that a server keeps outside of its calls, in a store that its replicas share; and the values that
/// [additions](addition::AddedStore) keep there, or in memory.
pub mod store {
    #[cfg(feature = "shared")]
    pub use crate::core::store::{
        Append, Appended, LogEntry, LogPage, Memory, Publisher, Rate, Received, Shared, Stored, Subscription,
        Take, Taken,
    };
    pub use crate::core::store::{Condition, StoreFuture, Table, Value, Write, Written};
    #[cfg(feature = "redis")]
    pub use crate::redis::Redis;
}

/// Limits of packages and programs that the callers of a server share.
pub mod permits {
    pub use crate::core::admission::{CallerPermit, CallerPermits};
}

/// What [`ServerBuilder::add`] takes: items that were made at run time, and whatever a package makes items of.
pub mod addition {
    pub use crate::core::{
        connection::ItemKind,
        server::{AddedItems, AddedStore, Addition, IntoAddition, ItemEdits, RefusedItem},
    };
}

/// Lock files of servers, as `mcp-dev lock` writes them.
#[cfg(any(feature = "client", feature = "contract"))]
pub mod lock_file {
    pub use crate::core::lock_file::LockFile;
}

/// Changes of items as they are registered: [`ServerBuilder::transform`].
pub mod transform {
    pub use crate::core::server::{ItemChanges, Transformed};
}

pub use self::core::arguments::{Completion, FromContext};
pub use self::core::connection::Principal;
pub use self::core::content::json::Json;
pub use self::core::context::Context;
pub use self::core::error::{ResultExt, ToolError};
pub use self::core::jsonrpc::ProtocolError;
pub use self::core::protocol::Revision;
pub use self::core::server::{Error, ErrorKind, Result, Server, ServerBuilder, ServerHandle};
pub use self::core::tool::output::ToolResult;
pub use self::core::{client_request, content, layer, tool};
#[cfg(feature = "events")]
pub use capability::events as event;
#[cfg(feature = "skills")]
pub use capability::skills as skill;
pub use capability::{prompts as prompt, resources as resource};
#[cfg(feature = "macros")]
pub use mcp_runtime_macros::{
    main, mcp_config, mcp_error, mcp_event, mcp_prompt, mcp_resource, mcp_service, mcp_tool, mcp_type,
};
#[cfg(feature = "audit")]
pub use observers::audit;

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
