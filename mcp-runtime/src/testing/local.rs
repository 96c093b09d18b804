//! A client of a server in the same process. [`TestServer`](super::TestServer) and the command line use it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Reply,
    changes::{Changes, Source},
};
use crate::{
    events::Lists,
    protocol::{META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, Revision, TASKS_EXTENSION},
    server::Server,
    transport::memory::{Answers, MemoryConnection},
};

/// A client in the same process.
pub(crate) struct Local {
    connection: MemoryConnection,
    revision: Revision,
    /// The result of `initialize`; null in 2026-07-28.
    handshake: Value,
    answers: Option<Answers>,
    /// What it declares that it can do.
    capabilities: Value,
}

/// How long to wait before a task is looked at again.
const POLL: Duration = Duration::from_millis(5);

impl Local {
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

    /// The same client, speaking that revision: with a handshake, unless it is 2026-07-28.
    pub(crate) fn speaking(self, revision: Revision) -> Self {
        let Self { connection, answers, capabilities, .. } = self;
        let mut connection = MemoryConnection::new(connection.server, answers.clone());
        if revision.is_modern() {
            return Self { connection, revision, handshake: Value::Null, answers, capabilities };
        }
        let (reply, agreed) = connection.initialize(&json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": env!("CARGO_PKG_VERSION") },
        }));
        let handshake = Reply::new(reply, Vec::new()).into_value();
        Self { connection, revision: agreed.unwrap_or(revision), handshake, answers, capabilities }
    }

    /// The same client, which can do this, and answers like that.
    pub(crate) fn answering(self, capabilities: Value, answers: Answers) -> Self {
        let revision = self.revision;
        Self { capabilities, answers: Some(answers), ..self }.speaking(revision)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// What the server says of itself: the result of `server/discover`, or of `initialize`.
    pub(crate) async fn introduction(&self) -> Value {
        if self.revision.is_modern() {
            self.request("server/discover", json!({})).await.into_value()
        } else {
            self.handshake.clone()
        }
    }

    /// Sends one request, as text, and waits for its reply.
    pub(crate) async fn request(&self, method: &str, mut params: Value) -> Reply {
        self.complete(&mut params);
        loop {
            let reply = self.round(method, &params).await;
            let Some(answered) = self.answered(&params, &reply) else { return reply };
            params = answered;
        }
    }

    /// Adds what every request of the revision carries.
    fn complete(&self, params: &mut Value) {
        if self.revision.is_modern()
            && let Value::Object(params) = params
            && let Value::Object(meta) = params.entry("_meta").or_insert_with(|| json!({}))
        {
            meta.entry(META_PROTOCOL_VERSION).or_insert_with(|| self.revision.as_str().into());
            meta.entry(META_CLIENT_CAPABILITIES).or_insert_with(|| self.capabilities.clone());
        }
    }

    /// Listens to what the filter wants.
    ///
    /// # Errors
    /// The reply that refuses.
    pub(crate) async fn listen(&self, filter: Value) -> Result<Changes, Reply> {
        if !self.revision.is_modern() {
            return Ok(self.follow(&filter).await);
        }
        let mut params = json!({ "notifications": filter });
        self.complete(&mut params);
        let subscription = self.connection.listen(&params).map_err(|reply| Reply::new(reply, Vec::new()))?;
        let mut changes = Changes::new(Source::Stream(Box::new(subscription)), Value::Null);
        changes.acknowledge();
        Ok(changes)
    }

    /// The same for a client that has shaken hands: its subscriptions are requests of their own.
    async fn follow(&self, wanted: &Value) -> Changes {
        let can = self.connection.server.offers(self.revision).changes;
        let lists = Lists {
            tools: can.tools && wanted["toolsListChanged"] == true,
            prompts: can.prompts && wanted["promptsListChanged"] == true,
            resources: can.resources && wanted["resourcesListChanged"] == true,
        };
        let filter = self.connection.server.hub().filter(lists);
        let mut acknowledged = json!({});
        for (key, honoured) in [
            ("toolsListChanged", lists.tools),
            ("promptsListChanged", lists.prompts),
            ("resourcesListChanged", lists.resources),
        ] {
            if honoured {
                acknowledged[key] = true.into();
            }
        }
        let uris = wanted["resourceSubscriptions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut honoured = Vec::new();
        for uri in uris.iter().filter_map(Value::as_str) {
            let reply = self.request("resources/subscribe", json!({ "uri": uri })).await;
            if !reply.is_error() && filter.subscribe(uri) {
                honoured.push(uri);
            }
        }
        if !honoured.is_empty() {
            acknowledged["resourceSubscriptions"] = honoured.into();
        }
        match self.connection.server.hub().follow(filter, None, false) {
            Some(follower) => Changes::new(Source::Session(follower), acknowledged),
            None => panic!("the server has too many subscribers"),
        }
    }

    /// The request that answers what a reply asks for; `None` if it asks for nothing, or not all of it is answered.
    fn answered(&self, params: &Value, reply: &Reply) -> Option<Value> {
        let answers = self.answers.as_ref()?;
        // a task shows what it asks as well, but is answered in its own way
        reply.value().get("resultType").filter(|kind| *kind == "input_required")?;
        let mut params = params.clone();
        params["inputResponses"] = answers_to(reply.value(), answers)?;
        if let Some(state) = reply.value().get("requestState") {
            params["requestState"] = state.clone();
        }
        Some(params)
    }

    /// Calls a tool as a task, answers what it asks and waits for its end: then this is what the call would have been
    /// answered with.
    pub(crate) async fn task(&self, mut params: Value) -> Reply {
        let mut capabilities = self.capabilities.clone();
        capabilities["extensions"][TASKS_EXTENSION] = json!({});
        let meta = json!({ META_CLIENT_CAPABILITIES: capabilities });
        params["_meta"] = meta.clone();
        let call = self.request("tools/call", params).await;
        if call.value()["resultType"] != "task" {
            return call;
        }
        let id = call.value()["taskId"].clone();
        loop {
            let reply = self.request("tasks/get", json!({ "taskId": id, "_meta": meta })).await;
            let task = reply.value();
            let member = match task["status"].as_str() {
                Some("completed") => "result",
                Some("failed") => "error",
                Some("input_required") => {
                    let answers = self.answers.as_ref().and_then(|answers| answers_to(task, answers));
                    let Some(answers) = answers else { return reply };
                    let params = json!({ "taskId": id, "inputResponses": answers, "_meta": meta });
                    let update = self.request("tasks/update", params).await;
                    if update.error().is_some() {
                        return update;
                    }
                    continue;
                }
                Some("working") => {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                _ => return reply,
            };
            let end = json!({ "jsonrpc": "2.0", "id": 0, member: task[member] });
            return Reply::new(end, Vec::new());
        }
    }

    async fn round(&self, method: &str, params: &Value) -> Reply {
        let (reply, notifications) = self.connection.request(method, params).await;
        Reply::new(reply, notifications)
    }

    /// Every entry of a list, from all of its pages.
    ///
    /// # Errors
    /// The reply that is no page.
    pub(crate) async fn list(&self, method: &str, member: &str) -> Result<Vec<Value>, Reply> {
        let mut entries = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.request(method, params).await;
            let Some(Value::Array(found)) = page.result_mut().and_then(|result| result.get_mut(member))
            else {
                return Err(page);
            };
            entries.append(found);
            match page.value().get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(entries),
            }
        }
    }
}

/// What the client says to the `inputRequests` of a result; one that cannot answer everything does not come back.
fn answers_to(result: &Value, answers: &Answers) -> Option<Value> {
    let asked = result.get("inputRequests")?.as_object()?;
    let answer = |request: &Value| answers(request["method"].as_str()?, &request["params"]).ok();
    asked.iter().map(|(key, request)| Some((key.clone(), answer(request)?))).collect()
}

/// Arguments as prompts take them: every value a string.
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
