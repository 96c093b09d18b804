//! A client of a server in the same process. [`TestServer`](super::TestServer) and the command line use it.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Reply,
    changes::{Changes, Source},
};
use crate::{
    context::{Outlet, Peer},
    dispatch::Begun,
    jsonrpc::parse,
    protocol::{META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, Revision, TASKS_EXTENSION},
    server::Server,
    subscribe::Lists,
    wire::Wire,
};

/// A client in the same process.
pub(crate) struct Local {
    server: Server,
    revision: Revision,
    peer: Peer,
    /// The result of `initialize`; null in the stateless era.
    handshake: Value,
    next: AtomicU64,
    answers: Option<Answers>,
    /// What it declares that it can do.
    capabilities: Value,
    /// Its connection, as far as there is one in memory.
    wire: Arc<Wire>,
}

/// What the client says to a question: the wire's `method` and `params` in, the result out, or an error's message.
pub(crate) type Answers = Arc<dyn Fn(&str, &Value) -> Result<Value, String> + Send + Sync>;

/// Keeps the notifications of one request, and answers the questions among them.
struct Seen {
    messages: Mutex<Vec<Value>>,
    answers: Option<Answers>,
    wire: Arc<Wire>,
}

impl Outlet for Seen {
    fn notify(&self, message: Vec<u8>) {
        self.deliver(message);
    }

    fn deliver(&self, message: Vec<u8>) -> bool {
        let message: Value = serde_json::from_slice(&message).unwrap_or_else(|error| {
            Value::String(format!("not JSON ({error}): {}", String::from_utf8_lossy(&message)))
        });
        let asked = message.get("id").map(Value::to_string);
        if let (Some(id), Some(answers)) = (asked, &self.answers) {
            let answer = answers(message["method"].as_str().unwrap_or_default(), &message["params"]);
            let response = match answer {
                Ok(result) => Ok(result.to_string().into()),
                Err(text) => Err(json!({ "code": -1, "message": text }).to_string().into()),
            };
            self.wire.deliver(&id, response);
        }
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        true
    }
}

/// How long to wait before a task is looked at again.
const POLL: Duration = Duration::from_millis(5);

impl Local {
    /// A client of the stateless era.
    pub(crate) fn modern(server: Server) -> Self {
        Self {
            server,
            revision: Revision::LATEST,
            peer: Peer::default(),
            handshake: Value::Null,
            next: AtomicU64::new(1),
            answers: None,
            capabilities: json!({}),
            wire: Wire::new(),
        }
    }

    /// The same client, speaking that revision: with a handshake, unless it is the stateless one.
    pub(crate) fn speaking(self, revision: Revision) -> Self {
        let Self { server, answers, capabilities, .. } = self;
        let mut local = Self::modern(server);
        (local.answers, local.capabilities) = (answers, capabilities);
        if revision.is_modern() {
            return local;
        }
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision.as_str(),
            "capabilities": local.capabilities,
            "clientInfo": { "name": "test", "version": env!("CARGO_PKG_VERSION") },
        }})
        .to_string();
        let mut out = Vec::new();
        if let Ok(message) = parse(message.as_bytes())
            && let Some(handshake) = local.server.initialize(&message, true, &mut out)
        {
            local.revision = handshake.revision;
            local.peer.client = handshake.client;
        }
        local.handshake = Reply::read(&out, Vec::new()).into_value();
        // it takes what is subscribed to; what there is to tell is told to `Changes`
        local.wire.follows(local.server.hub().filter(Lists::default()));
        local.peer.link = Some(local.wire.clone());
        local
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

    /// Adds what every request of the era carries.
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
        let mut out = Vec::new();
        let begun = self.begin("subscriptions/listen", &params, &self.peer, &mut out)?;
        let Begun::Listening(listening) = begun else { return Err(Reply::read(&out, Vec::new())) };
        let mut changes = Changes::new(Source::Stream(Box::new(listening)), Value::Null);
        changes.acknowledge();
        Ok(changes)
    }

    /// The same for a client that has shaken hands: its subscriptions are requests of their own.
    async fn follow(&self, wanted: &Value) -> Changes {
        let can = self.server.offers(self.revision).changes;
        let lists = Lists {
            tools: can.tools && wanted["toolsListChanged"] == true,
            prompts: can.prompts && wanted["promptsListChanged"] == true,
            resources: can.resources && wanted["resourcesListChanged"] == true,
        };
        let filter = self.server.hub().filter(lists);
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
        match self.server.hub().follow(filter, self.peer.caller.clone(), self.peer.restricted) {
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
            return Reply::read(end.to_string().as_bytes(), Vec::new());
        }
    }

    fn begin(&self, method: &str, params: &Value, peer: &Peer, out: &mut Vec<u8>) -> Result<Begun, Reply> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let text = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        match parse(text.as_bytes()) {
            Ok(message) => Ok(self.server.begin(&message, self.revision, peer, out)),
            Err(malformed) => Err(Reply::refused(&malformed.error)),
        }
    }

    async fn round(&self, method: &str, params: &Value) -> Reply {
        let seen = Arc::new(Seen {
            messages: Mutex::default(),
            answers: self.answers.clone(),
            wire: self.wire.clone(),
        });
        let peer = Peer { outlet: Some(seen.clone()), ..self.peer.clone() };
        let mut out = Vec::new();
        match self.begin(method, params, &peer, &mut out) {
            Ok(Begun::Running(running)) => out = running.await.bytes,
            // only `listen` keeps a subscription
            Ok(Begun::Listening(listening)) => out = listening.result(),
            Ok(Begun::Done(_)) => {}
            Err(refused) => return refused,
        }
        let seen = std::mem::take(&mut *seen.messages.lock().unwrap_or_else(PoisonError::into_inner));
        Reply::read(&out, seen)
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
