//! JSON-RPC errors, and the responses that carry them.

use std::fmt;

use serde_json::Value;

use super::writer::Object;
use crate::core::protocol;

/// A JSON-RPC error: the client's program sees it, the model usually does not.
///
/// Returned from a tool, it becomes the `error` of the response, with this code, message and data. For a failure that
/// the model should read and correct, return [`ToolError`](crate::ToolError) instead.
///
/// See the [error codes](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#error-codes).
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError {
    /// `code` on the wire.
    pub code: i64,
    /// `message` on the wire.
    pub message: String,
    /// `data` on the wire, omitted if `None`.
    pub data: Option<Value>,
}

impl ProtocolError {
    /// An error with this code and message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// `-32602`, invalid params.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(protocol::INVALID_PARAMS, message)
    }

    /// `-32603`, internal error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(protocol::INTERNAL_ERROR, message)
    }

    /// Writes the members of the response's `error`.
    pub(crate) fn write(&self, error: &mut Object<'_>) {
        error.value("code", &self.code).str("message", &self.message);
        if let Some(data) = &self.data {
            error.value("data", data);
        }
    }

    /// `-32600`, invalid request.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(protocol::INVALID_REQUEST, message)
    }

    /// The same error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ProtocolError {}

/// Appends an error response; `id` is the raw JSON of the request's id, omitted if it could not be read.
pub(crate) fn write_error_response(out: &mut Vec<u8>, id: Option<&str>, error: &ProtocolError) {
    let mut response = Object::new(out);
    response.raw("jsonrpc", "\"2.0\"");
    if let Some(id) = id {
        response.raw("id", id);
    }
    response.object("error", |e| error.write(e));
    response.end();
}
