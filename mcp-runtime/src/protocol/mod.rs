//! What the specification fixes: revisions, error codes and reserved keys. Everything else builds on it.

mod app;
mod log_level;
mod revision;
mod uri;

pub(crate) use app::{PAGE_MIME, UI_EXTENSION, UI_SETTINGS, is_page, shows_pages};
pub use log_level::LogLevel;
pub use revision::Revision;
pub(crate) use uri::normalise;

/// JSON-RPC: the text is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: JSON, but not a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: no such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the params do not fit the method.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the server failed.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// Handshake revisions only: no resource has this URI.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25 only: the user must visit URLs before the request can be served.
pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32042;
/// 2026-07-28: a mirrored header does not match the body.
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has headers"))]
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the client lacks a capability that the request needs.
pub(crate) const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// 2026-07-28: the protocol version is not served.
pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// `_meta` key of the revision that a request is written in.
pub(crate) const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of the client's capabilities.
pub(crate) const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of the client's name and version on requests.
pub(crate) const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of the token that a client wants to see on progress.
pub(crate) const META_PROGRESS_TOKEN: &str = "progressToken";
/// `_meta` key of the subscription that a message belongs to: the id of its `subscriptions/listen` request.
pub(crate) const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// `_meta` key of the server's name and version on results.
pub(crate) const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key of the log messages that a request asks for.
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The extension of skills (SEP-2640).
pub(crate) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// What is declared under it: directories can be read.
pub(crate) const SKILLS_SETTINGS: &str = r#"{"directoryRead":true}"#;

/// Extension: calls that go on as tasks (SEP-2663).
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
