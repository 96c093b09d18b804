//! Error codes of JSON-RPC and of MCP.

/// JSON-RPC: the text is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the JSON is not a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method is unknown.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the params are invalid for the method.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: an error inside the server.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// Before 2026-07-28: no resource with this URI exists.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25 only: the user must visit URLs before the request is retried.
pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32042;
/// 2026-07-28: a header differs from the member of the body that it mirrors.
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has headers"))]
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the client lacks a capability that the request needs.
pub(crate) const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// 2026-07-28: the server does not support the protocol version.
pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
