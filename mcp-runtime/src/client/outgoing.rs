//! A request on its way to the server: its text, and what transports other than byte streams repeat of it.

use serde_json::{Map, Value};

use crate::{
    jsonrpc::{Object, ProtocolError},
    protocol::Revision,
};

/// The raw JSON of a result, or the error that came instead.
pub(super) type RawReply = Result<String, ProtocolError>;

/// A request as a transport sends it.
#[derive(Debug)]
pub(super) struct OutgoingRequest {
    pub(super) id: u64,
    pub(super) method: String,
    pub(super) body: Vec<u8>,
    pub(super) revision: Revision,
    /// What the header `Mcp-Name` repeats.
    pub(super) name: Option<String>,
    /// The names and values of `Mcp-Param-*`, not yet encoded.
    pub(super) param_headers: Vec<(String, String)>,
}

impl OutgoingRequest {
    pub(super) fn new(id: u64, method: &str, params: &RequestParams, revision: Revision) -> Self {
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
        params.write(&mut message);
        message.end();
        Self { id, method: method.to_owned(), body, revision, name, param_headers: Vec::new() }
    }
}

/// The params of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestParams {
    pub(super) members: Map<String, Value>,
    /// Raw JSON of `requestState`, which is echoed byte for byte.
    pub(super) request_state: Option<String>,
}

impl RequestParams {
    fn write(&self, message: &mut Object<'_>) {
        message.object("params", |params| {
            for (key, value) in &self.members {
                params.escaped_value(key, value);
            }
            if let Some(state) = &self.request_state {
                params.raw("requestState", state);
            }
        });
    }

    /// The object `_meta`, which is added if it is missing.
    pub(super) fn meta(&mut self) -> &mut Map<String, Value> {
        let meta = self.members.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        match meta {
            Value::Object(meta) => meta,
            _ => unreachable!("it was made an object above"),
        }
    }
}

impl From<Map<String, Value>> for RequestParams {
    fn from(members: Map<String, Value>) -> Self {
        Self { members, request_state: None }
    }
}

/// The text of a notification to the server.
pub(super) fn notification_text(method: &str, params: &Map<String, Value>) -> Vec<u8> {
    crate::jsonrpc::notification(method, |object| {
        for (key, value) in params {
            object.escaped_value(key, value);
        }
    })
}

/// The text of `notifications/cancelled`.
pub(super) fn cancelled_text(id: u64) -> Vec<u8> {
    crate::jsonrpc::notification("notifications/cancelled", |params| {
        params.value("requestId", &id);
    })
}
