//! What the server wrote, and what must be true of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use serde_json::Value;

use super::script::Sent;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The messages that were read, in their order; those of a batch are in one line.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<Vec<Value>>>>);

impl Heard {
    /// # Panics
    /// It is not JSON-RPC.
    pub(super) fn push(&self, line: &str) {
        let messages = match serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")) {
            Value::Array(batch) => batch,
            message => vec![message],
        };
        assert!(!messages.is_empty(), "an empty batch");
        self.0.lock().expect("no panic").push(messages);
    }

    pub(super) fn messages(&self) -> Vec<Value> {
        self.0.lock().expect("no panic").iter().flatten().cloned().collect()
    }

    fn select<T>(&self, select: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        self.0.lock().expect("no panic").iter().flatten().filter_map(select).collect()
    }

    /// The ids of requests of the server.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.select(|message| message.get("method").and(message.get("id")).cloned())
    }

    /// The results of calls that request input.
    pub(super) fn unfinished(&self) -> Vec<Value> {
        self.select(|message| message["result"].get("requestState").and(message.get("result")).cloned())
    }

    pub(super) fn tasks(&self) -> Vec<String> {
        let created = |message: &Value| message["result"]["resultType"] == "task";
        self.select(|message| {
            created(message).then(|| message["result"]["taskId"].as_str().map(str::to_owned))?
        })
    }

    /// Checks all messages of a connection. `is_whole`: the client has read until the end.
    ///
    /// # Panics
    /// The server has broken a promise.
    pub(super) fn check(&self, sent: &Sent, is_whole: bool) {
        let lines = self.0.lock().expect("no panic");
        let mut responses = BTreeMap::<String, usize>::new();
        let mut succeeded = BTreeSet::new();
        let mut asked = BTreeSet::new();
        let has_ended = |responses: &BTreeMap<String, usize>, id: &Value| {
            let id = id.to_string();
            let request = sent.requests.get(&id).filter(|request| request.requests == 1);
            request.is_some() && responses.contains_key(&id)
        };
        for message in lines.iter().flatten() {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            let Some(method) = message.get("method") else {
                assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
                match message.get("id") {
                    Some(id @ (Value::Number(_) | Value::String(_))) => {
                        *responses.entry(id.to_string()).or_default() += 1;
                        if message.get("result").is_some() {
                            succeeded.insert(id.to_string());
                        }
                    }
                    // what cannot be read has no id
                    id => assert!(message.get("error").is_some(), "{id:?}: {message}"),
                }
                continue;
            };
            let params = &message["params"];
            if let Some(id) = message.get("id") {
                assert!(!sent.is_modern || sent.handshake.is_some(), "a client that is asked: {message}");
                assert!(asked.insert(id.to_string()), "an id is used again: {message}");
                continue;
            }
            let of = match method.as_str() {
                Some("notifications/progress") => &params["progressToken"],
                Some("notifications/message") => &params["data"]["call"],
                Some("notifications/cancelled") => &Value::Null,
                Some("notifications/resources/updated") => {
                    let unsubscribed = sent.unsubscribed.iter().filter(|id| **id > sent.subscribed);
                    let mut answered = unsubscribed.filter(|id| succeeded.contains(&id.to_string()));
                    let is_stream = params["_meta"].get(SUBSCRIPTION).is_some();
                    assert!(is_stream || answered.next().is_none(), "after the unsubscription: {message}");
                    &params["_meta"][SUBSCRIPTION]
                }
                _ => &params["_meta"][SUBSCRIPTION],
            };
            assert!(!has_ended(&responses, of), "after the response: {message} in {lines:#?}");
        }
        for (id, request) in &sent.requests {
            let count = responses.get(id).copied().unwrap_or_default();
            let needed = if is_whole && !request.may_be_silent { request.requests } else { 0 };
            assert!(
                (needed..=request.requests).contains(&count),
                "the request {id} has {count} responses, not {needed} to {}: {lines:#?}",
                request.requests
            );
        }
    }

    /// The requests that have no response yet, of those that must have one.
    pub(super) fn unanswered(&self, sent: &Sent) -> Vec<String> {
        let answered: BTreeSet<String> = self
            .select(|message| message.get("method").is_none().then(|| message["id"].to_string()))
            .into_iter()
            .collect();
        let open = sent.requests.iter().filter(|(_, request)| !request.may_be_silent && !request.is_stream);
        open.filter(|(id, _)| !answered.contains(*id)).map(|(id, _)| id.clone()).collect()
    }
}
