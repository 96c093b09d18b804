//! A request on its way to the server: its text, and what transports other than byte streams repeat of it.

use serde_json::{Map, Value};

use crate::{
    client::{exchange::RequestParams, operation::Operation},
    core::{
        jsonrpc::Object,
        protocol::{
            LogLevel, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROGRESS_TOKEN,
            META_PROTOCOL_VERSION, Method, Revision,
        },
    },
};

/// A request as a transport sends it.
pub(in crate::client) struct OutgoingRequest<'a> {
    pub(in crate::client) id: u64,
    pub(in crate::client) method: &'a str,
    pub(in crate::client) body: Vec<u8>,
    pub(in crate::client) revision: Revision,
    /// The value that the header `Mcp-Name` repeats.
    pub(in crate::client) name: Option<&'a str>,
    /// The names and values of `Mcp-Param-*`, not yet encoded.
    pub(in crate::client) param_headers: Vec<(String, String)>,
    /// The operation that the response is charged to.
    pub(in crate::client) operation: Option<&'a Operation>,
    /// Whether the program does not wait for it.
    pub(in crate::client) in_background: bool,
}

/// The members of a request's `_meta` besides those of its params.
pub(in crate::client) struct RequestMeta<'a> {
    /// The program's own.
    pub(in crate::client) own: &'a Map<String, Value>,
    pub(in crate::client) progress_token: Option<u64>,
    /// Those that every request of 2026-07-28 has, as JSON, since they do not change from request to request.
    pub(in crate::client) client: Option<&'a [u8]>,
    /// Only in that revision.
    pub(in crate::client) log_level: Option<LogLevel>,
}

impl<'a> OutgoingRequest<'a> {
    pub(in crate::client) fn new(
        id: u64,
        method: &'a str,
        params: &'a RequestParams,
        meta: &RequestMeta<'_>,
        revision: Revision,
    ) -> Self {
        let named_by = Method::of_name(method).and_then(|method| method.named_by);
        let name = named_by.and_then(|member| params.members.get(member)).and_then(Value::as_str);
        let mut body = Vec::with_capacity(512);
        let mut message = Object::new(&mut body);
        message.raw("jsonrpc", "\"2.0\"").value("id", &id).str("method", method);
        message.object("params", |object| {
            if meta.is_empty() {
                return params.write(object);
            }
            object.object("_meta", |object| meta.write(object, params.members.get("_meta"), revision));
            params.write_if(object, |key| key != "_meta");
        });
        message.end();
        Self {
            id,
            method,
            body,
            revision,
            name,
            param_headers: Vec::new(),
            operation: None,
            in_background: false,
        }
    }
}

impl RequestMeta<'_> {
    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.progress_token.is_none() && self.client.is_none()
    }

    /// Writes the members, and those of `params`; the protocol's take precedence, then the program's own.
    fn write(&self, meta: &mut Object<'_>, params: Option<&Value>, revision: Revision) {
        let of_params = params.and_then(Value::as_object).into_iter().flatten();
        let of_params = of_params.filter(|(key, _)| !self.own.contains_key(*key));
        for (key, value) in of_params.chain(self.own).filter(|(key, _)| !self.sets(key)) {
            meta.escaped_value(key, value);
        }
        if let Some(token) = self.progress_token {
            meta.value(META_PROGRESS_TOKEN, &token);
        }
        if let Some(client) = self.client {
            meta.str(META_PROTOCOL_VERSION, revision.as_str()).raw_members(client);
        }
        meta.opt_str(META_LOG_LEVEL, self.log_level.map(LogLevel::as_str));
    }

    /// Whether the protocol sets this member.
    fn sets(&self, key: &str) -> bool {
        match key {
            META_PROGRESS_TOKEN => self.progress_token.is_some(),
            META_PROTOCOL_VERSION | META_CLIENT_CAPABILITIES | META_CLIENT_INFO => self.client.is_some(),
            META_LOG_LEVEL => self.log_level.is_some(),
            _ => false,
        }
    }
}

/// The text of a notification to the server.
pub(in crate::client) fn notification_text(method: &str, params: &Map<String, Value>) -> Vec<u8> {
    crate::core::jsonrpc::notification(method, |object| {
        for (key, value) in params {
            object.escaped_value(key, value);
        }
    })
}

/// The text of `notifications/cancelled`.
pub(in crate::client) fn cancelled_text(id: u64) -> Vec<u8> {
    crate::core::jsonrpc::notification("notifications/cancelled", |params| {
        params.value("requestId", &id);
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta_of(params: &Value, meta: &RequestMeta<'_>) -> Value {
        let params = RequestParams::from(params.as_object().cloned().expect("an object"));
        let request = OutgoingRequest::new(1, "tools/call", &params, meta, Revision::LATEST);
        let text = String::from_utf8(request.body).expect("text");
        // a duplicate would be lost in a `Value`
        for key in
            [META_PROGRESS_TOKEN, META_PROTOCOL_VERSION, META_CLIENT_INFO, META_LOG_LEVEL, "\"own\"", "_meta"]
        {
            assert!(text.matches(key).count() <= 1, "{text}");
        }
        serde_json::from_str::<Value>(&text).expect("JSON")["params"]["_meta"].take()
    }

    #[test]
    fn the_meta_of_a_request_is_the_protocols_then_the_options_then_the_params() {
        let client = format!(r#""{META_CLIENT_CAPABILITIES}":{{}},"{META_CLIENT_INFO}":{{"name":"c"}}"#);
        let own = json!({ "own": 1, META_PROTOCOL_VERSION: "x" });
        let own = own.as_object().expect("an object");
        let client = Some(client.as_bytes());
        let meta = RequestMeta { own, progress_token: Some(7), client, log_level: None };
        let params = json!({ "_meta": { "own": 2, "other": 3, "progressToken": 4, META_LOG_LEVEL: "info" }, "name": "t" });
        let expected = json!({
            "own": 1,
            "other": 3,
            "progressToken": 7,
            META_PROTOCOL_VERSION: "2026-07-28",
            META_CLIENT_CAPABILITIES: {},
            META_CLIENT_INFO: { "name": "c" },
            META_LOG_LEVEL: "info",
        });
        assert_eq!(meta_of(&params, &meta), expected);
        let (client, log_level) = (Some(&b""[..]), Some(LogLevel::Error));
        let meta = RequestMeta { own: &Map::new(), progress_token: None, client, log_level };
        let expected = json!({ "own": 2, "other": 3, "progressToken": 4, META_PROTOCOL_VERSION: "2026-07-28", META_LOG_LEVEL: "error" });
        assert_eq!(meta_of(&params, &meta), expected);
    }

    #[test]
    fn a_legacy_request_has_the_meta_of_its_params_only() {
        let none = RequestMeta { own: &Map::new(), progress_token: None, client: None, log_level: None };
        assert_eq!(meta_of(&json!({ "name": "t" }), &none), Value::Null);
        assert_eq!(meta_of(&json!({ "_meta": { "own": 2 } }), &none), json!({ "own": 2 }));
        let token = RequestMeta { progress_token: Some(3), ..none };
        assert_eq!(meta_of(&json!({ "_meta": 5 }), &token), json!({ "progressToken": 3 }));
    }
}
