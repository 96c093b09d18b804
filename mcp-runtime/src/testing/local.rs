//! A client of a server in the same process. [`TestServer`](super::TestServer) and the command line use it.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::Reply;
use crate::{
    context::{Outlet, Peer},
    dispatch::Begun,
    jsonrpc::parse,
    protocol::{META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, Revision},
    server::Server,
};

/// A client in the same process.
pub(crate) struct Local {
    server: Server,
    revision: Revision,
    peer: Peer,
    /// The result of `initialize`; null in the stateless era.
    handshake: Value,
    next: AtomicU64,
}

/// Keeps the notifications of one request.
#[derive(Default)]
struct Seen(Mutex<Vec<Value>>);

impl Outlet for Seen {
    fn notify(&self, message: Vec<u8>) {
        let message = serde_json::from_slice(&message).unwrap_or_else(|error| {
            Value::String(format!("not JSON ({error}): {}", String::from_utf8_lossy(&message)))
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}

impl Local {
    /// A client of the stateless era.
    pub(crate) fn modern(server: Server) -> Self {
        let revision = Revision::LATEST;
        Self { server, revision, peer: Peer::default(), handshake: Value::Null, next: AtomicU64::new(1) }
    }

    /// A client that has shaken hands.
    pub(crate) fn legacy(server: Server, revision: Revision) -> Self {
        let mut local = Self::modern(server);
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision.as_str(),
            "capabilities": {},
            "clientInfo": { "name": "test", "version": env!("CARGO_PKG_VERSION") },
        }})
        .to_string();
        let mut out = Vec::new();
        if let Ok(message) = parse(message.as_bytes())
            && let Some(handshake) = local.server.initialize(&message, &mut out)
        {
            local.revision = handshake.revision;
            local.peer.client = handshake.client;
        }
        local.handshake = Reply::read(&out, Vec::new()).into_value();
        local
    }

    pub(crate) fn into_server(self) -> Server {
        self.server
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
        if self.revision.is_modern()
            && let Value::Object(params) = &mut params
            && let Value::Object(meta) = params.entry("_meta").or_insert_with(|| json!({}))
        {
            meta.entry(META_PROTOCOL_VERSION).or_insert_with(|| self.revision.as_str().into());
            meta.entry(META_CLIENT_CAPABILITIES).or_insert_with(|| json!({}));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let text = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let seen = Arc::new(Seen::default());
        let peer = Peer { outlet: Some(seen.clone()), ..self.peer.clone() };
        let mut out = Vec::new();
        let begun = match parse(text.as_bytes()) {
            Ok(message) => self.server.begin(&message, self.revision, &peer, &mut out),
            Err(malformed) => return Reply::refused(&malformed.error),
        };
        if let Begun::Running(running) = begun {
            out = running.await.bytes;
        }
        let seen = std::mem::take(&mut *seen.0.lock().unwrap_or_else(PoisonError::into_inner));
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
