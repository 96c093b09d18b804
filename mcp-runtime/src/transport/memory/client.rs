//! A client in the server's process: adds the `_meta` that its revision requires, answers the server's requests, and
//! requests every page of a list.

use serde_json::{Value, json};

use super::connection::{AnswerClientRequest, MemoryConnection};
use crate::{
    protocol::{META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, Revision},
    server::Server,
};

/// A client in the server's process.
pub(crate) struct MemoryClient {
    pub(crate) connection: MemoryConnection,
    revision: Revision,
    /// The result of `initialize`; null in 2026-07-28.
    handshake: Value,
    pub(crate) answers: Option<AnswerClientRequest>,
    /// The wire's `clientCapabilities`.
    pub(crate) capabilities: Value,
}

/// The response to one request, and the notifications before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemoryReply {
    pub(crate) message: Value,
    pub(crate) notifications: Vec<Value>,
}

impl MemoryReply {
    /// The `result`; null for an error.
    pub(crate) fn result(&self) -> &Value {
        &self.message["result"]
    }

    pub(crate) fn into_result(mut self) -> Value {
        self.message.get_mut("result").map_or(Value::Null, Value::take)
    }
}

impl MemoryClient {
    /// A client of 2026-07-28.
    pub(crate) fn modern(server: Server) -> Self {
        Self {
            connection: MemoryConnection::new(server, None),
            revision: Revision::LATEST,
            handshake: Value::Null,
            answers: None,
            capabilities: json!({}),
        }
    }

    /// The same client with this revision; sends `initialize`, unless it is 2026-07-28.
    pub(crate) fn with_revision(self, revision: Revision) -> Self {
        let Self { connection, answers, capabilities, .. } = self;
        let mut connection = connection.reconnect(answers.clone());
        if revision.is_modern() {
            return Self { connection, revision, handshake: Value::Null, answers, capabilities };
        }
        let (reply, agreed) = connection.initialize(&json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": env!("CARGO_PKG_VERSION") },
        }));
        let handshake = MemoryReply { message: reply, notifications: Vec::new() }.into_result();
        Self { connection, revision: agreed.unwrap_or(revision), handshake, answers, capabilities }
    }

    /// The same client with these capabilities, answering the server's requests with `answers`.
    pub(crate) fn with_answers(self, capabilities: Value, answers: AnswerClientRequest) -> Self {
        let revision = self.revision;
        Self { capabilities, answers: Some(answers), ..self }.with_revision(revision)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The result of `server/discover`, or of `initialize`.
    pub(crate) async fn discover(&self) -> Value {
        if self.revision.is_modern() {
            self.request("server/discover", json!({})).await.into_result()
        } else {
            self.handshake.clone()
        }
    }

    /// Sends one request, answers its `inputRequests`, and returns the final reply.
    pub(crate) async fn request(&self, method: &str, mut params: Value) -> MemoryReply {
        self.add_meta(&mut params);
        loop {
            let reply = self.send(method, &params).await;
            let Some(retry) = self.retry_params(&params, &reply) else { return reply };
            params = retry;
        }
    }

    /// Calls a tool like [`request`](Self::request), with arguments as they are written: a `Value` has no integers beyond
    /// 64 bits.
    #[cfg(feature = "cli")]
    pub(crate) async fn call_with_text(&self, name: &str, arguments: &str) -> MemoryReply {
        let mut params = json!({ "name": name });
        self.add_meta(&mut params);
        loop {
            let mut text = params.to_string();
            text.pop();
            text.push_str(",\"arguments\":");
            text.push_str(arguments);
            text.push('}');
            let (message, notifications) = self.connection.request_text("tools/call", &text).await;
            let reply = MemoryReply { message, notifications };
            let Some(retry) = self.retry_params(&params, &reply) else { return reply };
            params = retry;
        }
    }

    /// Adds the `_meta` that every request of the revision carries.
    pub(crate) fn add_meta(&self, params: &mut Value) {
        if self.revision.is_modern()
            && let Value::Object(params) = params
            && let Value::Object(meta) = params.entry("_meta").or_insert_with(|| json!({}))
        {
            meta.entry(META_PROTOCOL_VERSION).or_insert_with(|| self.revision.as_str().into());
            meta.entry(META_CLIENT_CAPABILITIES).or_insert_with(|| self.capabilities.clone());
        }
    }

    /// The params of the request that answers an `input_required` result; `None` for any other reply, or if an input
    /// request is not answered.
    fn retry_params(&self, params: &Value, reply: &MemoryReply) -> Option<Value> {
        let answers = self.answers.as_ref()?;
        // the input requests of a task are answered by `tasks/update`
        reply.result().get("resultType").filter(|kind| *kind == "input_required")?;
        let mut params = params.clone();
        params["inputResponses"] = answer_input_requests(reply.result(), answers)?;
        if let Some(state) = reply.result().get("requestState") {
            params["requestState"] = state.clone();
        }
        Some(params)
    }

    async fn send(&self, method: &str, params: &Value) -> MemoryReply {
        let (message, notifications) = self.connection.request(method, params).await;
        MemoryReply { message, notifications }
    }

    /// The entries of all pages of a list.
    ///
    /// # Errors
    /// The reply that is not a page.
    pub(crate) async fn list(&self, method: &str, member: &str) -> Result<Vec<Value>, MemoryReply> {
        let mut entries = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.request(method, params).await;
            let Some(Value::Array(page_entries)) =
                page.message.pointer_mut("/result").and_then(|result| result.get_mut(member))
            else {
                return Err(page);
            };
            entries.append(page_entries);
            match page.result().get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(entries),
            }
        }
    }
}

/// The `inputResponses` to the `inputRequests` of a result; `None` if one of them is not answered.
pub(crate) fn answer_input_requests(result: &Value, answers: &AnswerClientRequest) -> Option<Value> {
    let requests = result.get("inputRequests")?.as_object()?;
    let answer = |request: &Value| answers(request["method"].as_str()?, &request["params"]).ok();
    requests.iter().map(|(key, request)| Some((key.clone(), answer(request)?))).collect()
}

/// The arguments of `prompts/get`: every value is a string.
pub(crate) fn prompt_arguments(arguments: Value) -> Value {
    match arguments {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                (key, if value.is_string() { value } else { Value::String(value.to_string()) })
            })
            .collect(),
        other => other,
    }
}
