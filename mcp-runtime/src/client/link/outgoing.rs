//! A request on its way to the server: its text, and what transports other than byte streams repeat of it.

use serde_json::{Map, Value};

use crate::{
    client::core::RequestParams,
    jsonrpc::{Object, ProtocolError},
    protocol::Revision,
};

/// The raw JSON of a result, or the error that came instead.
pub(in crate::client) type RawReply = Result<String, ProtocolError>;

/// A request as a transport sends it.
#[derive(Debug)]
pub(in crate::client) struct OutgoingRequest {
    pub(in crate::client) id: u64,
    pub(in crate::client) method: String,
    pub(in crate::client) body: Vec<u8>,
    pub(in crate::client) revision: Revision,
    /// What the header `Mcp-Name` repeats.
    pub(in crate::client) name: Option<String>,
    /// The names and values of `Mcp-Param-*`, not yet encoded.
    pub(in crate::client) param_headers: Vec<(String, String)>,
}

impl OutgoingRequest {
    pub(in crate::client) fn new(id: u64, method: &str, params: &RequestParams, revision: Revision) -> Self {
        let name_key = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => "",
        };
        let name = params.members.get(name_key).and_then(Value::as_str).map(str::to_owned);
        let mut body = Vec::with_capacity(256);
        let mut message = Object::new(&mut body);
        message.raw("jsonrpc", "\"2.0\"").value("id", &id).str("method", method);
        message.object("params", |object| params.write(object));
        message.end();
        Self { id, method: method.to_owned(), body, revision, name, param_headers: Vec::new() }
    }
}

/// The text of a notification to the server.
pub(in crate::client) fn notification_text(method: &str, params: &Map<String, Value>) -> Vec<u8> {
    crate::jsonrpc::notification(method, |object| {
        for (key, value) in params {
            object.escaped_value(key, value);
        }
    })
}

/// The text of `notifications/cancelled`.
pub(in crate::client) fn cancelled_text(id: u64) -> Vec<u8> {
    crate::jsonrpc::notification("notifications/cancelled", |params| {
        params.value("requestId", &id);
    })
}
