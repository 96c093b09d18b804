//! What a line is: the parts of a message by which it is routed. The rest is not looked at, and lines are passed on as they are.

use serde_json::{Value, json};

/// A line of either side.
pub(super) enum Line {
    One(Value),
    /// A batch of 2025-03-26.
    Batch(Vec<Value>),
    /// Not JSON, or neither an object nor a list.
    Other,
}

impl Line {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        match serde_json::from_slice(bytes) {
            Ok(value @ Value::Object(_)) => Self::One(value),
            Ok(Value::Array(values)) if !values.is_empty() => Self::Batch(values),
            _ => Self::Other,
        }
    }

    pub(super) fn messages(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Batch(values) => values,
            Self::Other => &[],
        }
    }

    /// The bytes of the line as its receiver gets them, none if it gets nothing; `pass` says what becomes of each message.
    pub(super) fn passed(&self, bytes: Vec<u8>, mut pass: impl FnMut(&Value) -> Pass) -> Vec<u8> {
        let mut is_changed = false;
        let mut messages = Vec::with_capacity(self.messages().len());
        for message in self.messages() {
            let passed = pass(message);
            is_changed |= !matches!(passed, Pass::AsItIs);
            messages.extend(match passed {
                Pass::Drop => None,
                Pass::AsItIs => Some(message.clone()),
                Pass::Changed(message) => Some(message),
            });
        }
        if is_changed { self.with_messages(messages).unwrap_or_default() } else { bytes }
    }

    /// The same line with other messages; `None` if there are none.
    pub(super) fn with_messages(&self, mut messages: Vec<Value>) -> Option<Vec<u8>> {
        let value = match self {
            Self::Batch(_) if !messages.is_empty() => Value::Array(messages),
            _ => messages.pop()?,
        };
        Some(value.to_string().into_bytes())
    }
}

/// What becomes of a message.
pub(super) enum Pass {
    Drop,
    AsItIs,
    Changed(Value),
}

impl From<Option<Value>> for Pass {
    fn from(changed: Option<Value>) -> Self {
        changed.map_or(Self::AsItIs, Self::Changed)
    }
}

/// The kind of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Kind<'m> {
    Request { id: &'m Value, method: &'m str },
    Notification { method: &'m str },
    Response { id: &'m Value },
    Other,
}

pub(super) fn kind(message: &Value) -> Kind<'_> {
    let id = message.get("id").filter(|id| !id.is_null());
    match (id, message.get("method").and_then(Value::as_str)) {
        (Some(id), Some(method)) => Kind::Request { id, method },
        (None, Some(method)) => Kind::Notification { method },
        (Some(id), None) if message.get("result").is_some() || message.get("error").is_some() => {
            Kind::Response { id }
        }
        _ => Kind::Other,
    }
}

/// The same message with another id; `None` if it has this one.
pub(super) fn with_id(message: &Value, id: Value) -> Option<Value> {
    if message["id"] == id {
        return None;
    }
    let mut message = message.clone();
    message["id"] = id;
    Some(message)
}

/// The `_meta` of a request, without the token by which its client gets progress.
pub(super) fn without_progress(meta: &Value) -> Value {
    let mut meta = meta.clone();
    if let Some(members) = meta.as_object_mut() {
        members.remove("progressToken");
    }
    meta
}

pub(super) fn to_line(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

pub(super) fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    to_line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn notification(method: &str) -> Vec<u8> {
    to_line(&json!({ "jsonrpc": "2.0", "method": method }))
}

/// The answer to a request that the server did not answer. Its `data` is the same for every reason, so that programs can tell.
pub(super) fn not_answered(id: &Value, reason: &str, detail: &str) -> Value {
    const INTERNAL_ERROR: i64 = -32603;
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {
            "code": INTERNAL_ERROR,
            "message": detail,
            "data": { "type": "mcp-dev", "reason": reason, "retryable": true },
        },
    })
}
