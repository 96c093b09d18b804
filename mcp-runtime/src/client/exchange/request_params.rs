//! The params of requests, in which some members are JSON already: what the server or the user wrote is sent on byte for
//! byte.

use serde_json::{Map, Value, json};

use crate::core::protocol::{META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION};
use crate::core::{jsonrpc::Object, protocol::Revision};

/// The params of a request.
#[derive(Clone, Default)]
pub(crate) struct RequestParams {
    pub(crate) members: Map<String, Value>,
    /// Members that are raw JSON, such as a `requestState`.
    raw: Vec<(&'static str, String)>,
}

impl RequestParams {
    /// Sets a member to raw JSON.
    pub(crate) fn set_raw(&mut self, key: &'static str, json: String) {
        self.remove_raw(key);
        self.raw.push((key, json));
    }

    pub(crate) fn raw(&self, key: &str) -> Option<&str> {
        self.raw.iter().find(|(known, _)| *known == key).map(|(_, json)| json.as_str())
    }

    pub(crate) fn remove_raw(&mut self, key: &str) {
        self.raw.retain(|(known, _)| *known != key);
    }

    pub(crate) fn write(&self, params: &mut Object<'_>) {
        self.write_if(params, |_| true);
    }

    /// Writes the members whose keys `writes` accepts, and all that are raw JSON.
    pub(crate) fn write_if(&self, params: &mut Object<'_>, writes: fn(&str) -> bool) {
        for (key, value) in self.members.iter().filter(|(key, _)| writes(key)) {
            params.escaped_value(key, value);
        }
        for (key, json) in &self.raw {
            params.raw(key, json);
        }
    }

    /// The object `_meta`, which is added if it is missing.
    pub(crate) fn meta(&mut self) -> &mut Map<String, Value> {
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
        Self { members, raw: Vec::new() }
    }
}

/// The members of `_meta` that every request of 2026-07-28 has; none in other revisions.
pub(crate) fn protocol_meta(
    revision: Revision,
    capabilities: impl FnOnce() -> Value,
) -> Option<[(&'static str, Value); 2]> {
    revision.is_modern().then(|| {
        [(META_PROTOCOL_VERSION, revision.as_str().into()), (META_CLIENT_CAPABILITIES, capabilities())]
    })
}

/// The params of `initialize`.
pub(crate) fn initialize_params(revision: Revision, capabilities: Value, client_info: Value) -> Value {
    // `json!` would copy the values
    let mut params = json!({ "protocolVersion": revision.as_str() });
    params["capabilities"] = capabilities;
    params["clientInfo"] = client_info;
    params
}

/// The arguments of `prompts/get`: every value is a string, and one that is null is absent.
pub(crate) fn prompt_arguments(arguments: Value) -> Value {
    match arguments {
        Value::Object(mut map) => {
            map.retain(|_, value| !value.is_null());
            for value in map.values_mut().filter(|value| !value.is_string()) {
                *value = Value::String(value.to_string());
            }
            Value::Object(map)
        }
        other => other,
    }
}
