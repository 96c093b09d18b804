//! JSON-RPC messages of legacy and modern clients, and helpers that read responses.

use serde_json::{Value, json};

/// The key of `_meta` with the id of the subscription that a message belongs to.
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The `_meta` of a modern request, from a client without capabilities.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A request with exactly these params.
#[allow(clippy::needless_pass_by_value, reason = "params are written where they are used")]
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// A notification with exactly these params.
#[allow(clippy::needless_pass_by_value, reason = "params are written where they are used")]
pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A modern tool call.
pub fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta() }))
}

/// The same call from a legacy client.
pub fn legacy_call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// A `ping` without params.
pub fn ping(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "ping" })
}

/// The notification that cancels a request.
pub fn cancelled(id: impl Into<Value>) -> Value {
    notification("notifications/cancelled", json!({ "requestId": id.into() }))
}

/// The first request of a handshake.
pub fn initialize(id: impl Into<Value>, version: &str, capabilities: &Value) -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client });
    request(id, "initialize", params)
}

/// The text of the first block of a tool's result.
#[track_caller]
pub fn text_of(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}

/// The code of an error reply.
#[track_caller]
pub fn error_code(reply: &Value) -> i64 {
    reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error in {reply}"))
}
