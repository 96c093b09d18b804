//! Requests of this program in the sessions of clients, with their headers: lists of tools, by whose schemas calls are masked, and
//! what the author asks of tasks.

use std::sync::Arc;

use hyper::{
    Method,
    header::{HeaderName, HeaderValue},
    http::request::Parts,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{
    super::{
        message::{self, Line},
        session::{MAX_PAGES, NOT_LISTED, OwnRequest, REPLAY, without_progress},
        trace::Direction,
    },
    MAX_KNOWN, Proxy, SESSION_ID, Server,
    own::NotEntered,
    streams::LAST_EVENT_ID,
    upstream::set,
};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How a client has sent a request.
pub(super) struct Sent {
    pub(super) head: Parts,
    /// Its `_meta`.
    pub(super) meta: Value,
}

impl Proxy {
    /// Lists the tools before a call of one that is not known. The call waits for the list, but not longer than the author wants.
    pub(super) async fn learn_tools(self: &Arc<Self>, session: &str, head: &Parts, line: &Line) {
        let Some(call) = line.messages().iter().find(|message| self.tools.is_unknown_call(message)) else {
            return;
        };
        let sent = Sent { head: head.clone(), meta: without_progress(&call["params"]["_meta"]) };
        let listing = self.clone().list_tools(session.to_owned(), sent, call.clone());
        let listing = tokio::spawn(timeout(REPLAY, listing));
        if !self.list_wait.is_zero() && timeout(self.list_wait, listing).await.is_err() {
            self.trace.note(session, NOT_LISTED);
        }
    }

    async fn list_tools(self: Arc<Self>, session: String, sent: Sent, call: Value) {
        let key = (session, self.tools.generation());
        // others wait for the list in progress
        let mut listed = self.listed.lock().await;
        if !self.tools.is_unknown_call(&call) || listed.contains(&key) {
            return;
        }
        if listed.len() >= MAX_KNOWN {
            listed.clear();
        }
        listed.insert(key.clone());
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let Ok(answer) = self.ask_as(&sent, &self.fresh_id(), "tools/list", params).await else {
                // the next call tries again
                listed.remove(&key);
                return;
            };
            self.tools.learn(&answer["result"]);
            match answer["result"].get("nextCursor").filter(|cursor| !cursor.is_null()) {
                Some(next) => cursor = Some(next.clone()),
                None => return,
            }
        }
    }

    /// Sends requests of the author, until the page is gone.
    pub(super) async fn send_requests(self: Arc<Self>, mut requests: mpsc::Receiver<OwnRequest>) {
        while let Some(request) = requests.recv().await {
            tokio::spawn(self.clone().send_own(request));
        }
    }

    /// Sends a request of the author about a task as the client would that has begun it.
    async fn send_own(self: Arc<Self>, request: OwnRequest) {
        let OwnRequest { session, method, params, response } = request;
        let task = params["taskId"].as_str().unwrap_or_default();
        // a response that is dropped tells the author
        let Some(sent) = self.sender_of(&session, task) else { return };
        let id = self.fresh_id();
        let shown = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.record(&session, Direction::ToServer, &shown);
        let answer = match self.ask_as(&sent, &id, &method, params).await {
            Ok(answer) => {
                self.record(&session, Direction::ToClient, &answer);
                answer
            }
            Err(text) => {
                self.trace.note(&session, &text);
                json!({ "error": { "code": -32603, "message": text } })
            }
        };
        // the page may be closed
        let _gone = response.send(answer);
    }

    /// Sends a request as a client has sent another one; returns the response.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses it before it answers.
    async fn ask_as(&self, sent: &Sent, id: &str, method: &str, mut params: Value) -> Result<Value, String> {
        let mut head = sent.head.clone();
        head.method = Method::POST;
        let arguments = head.headers.keys().filter(|name| name.as_str().starts_with("mcp-param-"));
        for name in arguments.cloned().collect::<Vec<_>>().into_iter().chain([NAME, LAST_EVENT_ID]) {
            head.headers.remove(name);
        }
        if head.headers.contains_key(METHOD) {
            set(&mut head.headers, METHOD, HeaderValue::try_from(method).ok());
            let task = params["taskId"].as_str().and_then(|task| HeaderValue::try_from(task).ok());
            set(&mut head.headers, NAME, task);
        }
        if sent.meta.is_object() {
            params["_meta"] = sent.meta.clone();
        }
        let line = message::request(id, method, &params);
        let server = match &self.server {
            Server::Elsewhere(server) => server.clone(),
            Server::Own(own) => {
                let session = match own.clients.of(&head.headers) {
                    Some(None) => return Err("the session has ended".to_owned()),
                    other => other.flatten(),
                };
                let wait = own.wait(line.len(), false);
                let reached = self.reach(own, session.as_deref(), wait).await;
                let (running, id) = reached.map_err(|unreachable| unreachable.reason().1)?;
                set(&mut head.headers, SESSION_ID, id);
                running.url.clone()
            }
        };
        match self.ask(&server, &head, line).await {
            Ok((_, answer)) => Ok(answer),
            Err(NotEntered::Refused(response)) => {
                Err(format!("the server answers with HTTP {}", response.status().as_u16()))
            }
            Err(NotEntered::Failed(text)) => Err(format!("the server cannot be reached: {text}")),
        }
    }
}
