//! Keys in `_meta` that the specification reserves.

/// `_meta` key of the protocol version of a request.
pub(crate) const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of the client's capabilities.
pub(crate) const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of the client's name and version on requests.
pub(crate) const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of the token that identifies a request in its progress notifications.
pub(crate) const META_PROGRESS_TOKEN: &str = "progressToken";
/// `_meta` key of the subscription that a message belongs to: the id of its `subscriptions/listen` request.
pub(crate) const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// `_meta` key of the task of 2025-11-25 that a message belongs to.
#[cfg(feature = "client")]
pub(crate) const META_RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// `_meta` key of the server's name and version on results.
pub(crate) const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key of the minimum level of the log messages that a request enables.
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
