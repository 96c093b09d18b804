//! A client in the server's process: adds the `_meta` that its revision requires, answers the server's requests, and
//! requests every page of a list.

use serde_json::{Map, Value, json};

use super::{
    input_rounds::{InputRounds, RoundOutcome},
    list_pages::{ListBounds, ListPages, ListedKind},
    request_params::{RequestParams, initialize_params, protocol_meta},
};
use crate::{
    core::{
        jsonrpc::{Object, parse},
        protocol::Revision,
        server::Server,
    },
    transport::memory::{AnswerClientRequest, MemoryConnection, parse_message},
};

/// A client in the server's process.
pub(crate) struct MemoryClient {
    pub(crate) connection: MemoryConnection,
    revision: Revision,
    /// The result of `initialize`; null in 2026-07-28.
    handshake: Value,
    pub(crate) answers: Option<AnswerClientRequest>,
    /// `clientCapabilities` on the wire.
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
        let info = json!({ "name": "test", "version": env!("CARGO_PKG_VERSION") });
        let params = initialize_params(revision, capabilities.clone(), info);
        let (reply, agreed) = connection.initialize(&params);
        let handshake =
            MemoryReply { message: parse_message(&reply), notifications: Vec::new() }.into_result();
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
    pub(crate) async fn request(&self, method: &str, params: Value) -> MemoryReply {
        match params {
            Value::Object(members) => self.request_in_rounds(method, members.into()).await,
            // only a test sends anything else
            other => {
                let (text, notifications) = self.connection.request(method, &other.to_string()).await;
                MemoryReply { message: parse_message(&text), notifications }
            }
        }
    }

    /// Calls a tool like [`request`](Self::request), with arguments as they are written: a `Value` has no integers beyond
    /// 64 bits.
    pub(crate) async fn call_with_text(&self, name: &str, arguments: &str) -> MemoryReply {
        let mut params = Map::new();
        params.insert("name".to_owned(), name.into());
        let mut params = RequestParams::from(params);
        params.set_raw("arguments", arguments.to_owned());
        self.request_in_rounds("tools/call", params).await
    }

    async fn request_in_rounds(&self, method: &str, mut params: RequestParams) -> MemoryReply {
        self.add_meta(&mut params);
        let mut rounds = InputRounds::new(params);
        loop {
            let params = text_of(rounds.params());
            let (text, notifications) = self.connection.request(method, &params).await;
            if let Some(answers) = self.answers_to(&mut rounds, &text) {
                rounds.answer(answers);
            } else {
                return MemoryReply { message: parse_message(&text), notifications };
            }
        }
    }

    /// Adds the `_meta` that every request of the revision has, without what it has already.
    fn add_meta(&self, params: &mut RequestParams) {
        // a test may send a `_meta` that is not an object
        if params.members.get("_meta").is_some_and(|meta| !meta.is_object()) {
            return;
        }
        for (key, value) in protocol_meta(self.revision, || self.capabilities.clone()).into_iter().flatten() {
            params.meta().entry(key).or_insert(value);
        }
    }

    /// The answers to an `input_required` reply; `None` for any other reply, or if one of its requests is not answered.
    fn answers_to(&self, rounds: &mut InputRounds, reply: &[u8]) -> Option<Map<String, Value>> {
        let answers = self.answers.as_ref()?;
        let result = parse(reply).ok()?.response()?.ok()?;
        match RoundOutcome::read(result) {
            // the input requests of a task are answered by `tasks/update`
            Ok(RoundOutcome::Input(required)) if !required.requests.is_empty() => {
                answer_all(&rounds.next(required).ok()?, answers)
            }
            _ => None,
        }
    }

    /// Opens a stream, with `subscriptions/listen` or another method.
    ///
    /// # Errors
    /// The error reply.
    pub(crate) fn listen(
        &self,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<crate::core::dispatch::NotificationStream, MemoryReply> {
        let mut params = RequestParams::from(params);
        self.add_meta(&mut params);
        let stream = self.connection.listen(method, &text_of(&params));
        stream.map_err(|reply| MemoryReply { message: parse_message(&reply), notifications: Vec::new() })
    }

    /// The entries of all pages of a list.
    ///
    /// # Errors
    /// The reply that is not a page.
    pub(crate) async fn list(&self, kind: ListedKind) -> Result<Vec<Value>, MemoryReply> {
        let mut pages = ListPages::new(kind, ListBounds::IN_PROCESS);
        loop {
            let page = self.request_in_rounds(kind.method(), pages.params().into()).await;
            match pages.take(&page.result().to_string()) {
                Ok(true) if pages.dropped.is_empty() => return Ok(pages.entries),
                Ok(true) => return Err(page),
                Ok(false) => {}
                Err(_) => return Err(page),
            }
        }
    }
}

fn text_of(params: &RequestParams) -> String {
    let mut out = Vec::new();
    let mut object = Object::new(&mut out);
    params.write(&mut object);
    object.end();
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn answer_all(
    requests: &Map<String, Value>,
    answers: &AnswerClientRequest,
) -> Option<Map<String, Value>> {
    let answer = |request: &Value| answers(request["method"].as_str()?, &request["params"]).ok();
    let mut responses = Map::new();
    for (key, request) in requests {
        responses.insert(key.clone(), answer(request)?);
    }
    Some(responses)
}
