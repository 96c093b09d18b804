//! A client of other servers: over stdio, HTTP or byte streams, in every revision of the protocol.
//!
//! ```no_run
//! use mcp_runtime::client::Client;
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), mcp_runtime::client::Error> {
//! let files = Client::connect("npx -y @modelcontextprotocol/server-filesystem ./data").await?;
//! for tool in files.tools().await? {
//!     println!("{}: {}", tool.name(), tool.description().unwrap_or_default());
//! }
//! let found = files.call("search_files", json!({ "path": ".", "pattern": "tea" })).await?;
//! println!("{}", found.ok()?.text());
//! files.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Clones of a `Client` share one connection, which ends with the last of them. The server's process, and the processes
//! that it has started, end with the connection.

#[cfg(feature = "client")]
pub mod agent;
#[cfg(feature = "client")]
mod cleanup;
#[cfg(feature = "client")]
mod connect;
// the command line and the test kit use it without the feature
#[cfg(feature = "client")]
mod error;
#[cfg(all(feature = "client", feature = "events"))]
mod events;
#[cfg(any(feature = "client", feature = "cli", feature = "testing", test))]
pub(crate) mod exchange;
#[cfg(feature = "client")]
mod large_text;
#[cfg(feature = "client")]
pub(crate) mod link;
#[cfg(feature = "client-oauth")]
mod oauth;
#[cfg(feature = "client")]
mod operation;
#[cfg(feature = "client")]
mod receive;
#[cfg(feature = "client")]
mod requests;
#[cfg(feature = "client")]
mod server_config;

#[cfg(all(feature = "client", feature = "events"))]
pub use self::events::{EventOccurrence, EventSubscription, PendingSubscription};
#[cfg(feature = "client")]
pub(crate) use self::link::child_process::manage_main;
#[cfg(feature = "client-keyring")]
pub use self::oauth::KeyringTokens;
#[cfg(feature = "client-oauth")]
pub use self::oauth::{FileTokens, IdentityProvider, OAuth, TokenStore};
#[cfg(all(feature = "client", feature = "skills"))]
pub use self::requests::verified_skills::{SkillFileInfo, SkillInfo};
#[cfg(feature = "client")]
pub use self::{
    connect::{client_builder::ClientBuilder, client_limits::ClientLimits},
    error::Error,
    link::child_process::{end_children, end_children_on_signal},
    receive::{
        change_stream::ResourceSubscription,
        handlers::{
            ChangeEvent, ElicitAnswer, FormRequest, LogMessage, ProgressUpdate, SampleAnswer, SampleRequest,
            UrlRequest,
        },
    },
    requests::{
        client_handle::{Client, CompletionOf},
        listed_items::{EventInfo, PromptInfo, ResourceInfo, TemplateInfo, ToolInfo},
        pending_request::{PendingCall, Refresh, Round},
        result_types::{CallResult, ReadResult, RenderedPrompt, Suggestions},
        task_handle::{RunningToolTask, TaskProgress},
        typed_item::TypedItem,
    },
    server_config::McpServers,
};
