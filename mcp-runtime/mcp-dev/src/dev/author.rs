//! Requests that the author sends on the page, in the session of a client, which gets nothing of them.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{message::without_progress, replay::META_REVISION};

/// A request of the author in the session of a client, which gets nothing of it.
pub(super) struct OwnRequest {
    pub(super) method: String,
    pub(super) params: Value,
    /// Gets the whole response; it is dropped if no process answers.
    pub(super) response: oneshot::Sender<Value>,
}

/// The author of a server, if there is a page.
#[derive(Default)]
pub(super) struct Author {
    requests: Option<mpsc::Receiver<OwnRequest>>,
    /// Those that the process has not answered, by id.
    waiting: HashMap<String, (oneshot::Sender<Value>, Instant)>,
    /// The `_meta` by which requests of this client name their revision.
    meta: Value,
}

impl Author {
    pub(super) fn new(requests: mpsc::Receiver<OwnRequest>) -> Self {
        Self { requests: Some(requests), ..Self::default() }
    }

    /// The next request; never, without a page.
    pub(super) async fn next(&mut self) -> OwnRequest {
        if let Some(receiver) = &mut self.requests
            && let Some(request) = receiver.recv().await
        {
            return request;
        }
        // the page is left out
        std::future::pending().await
    }

    /// The client's requests name their revision in this way.
    pub(super) fn note_meta(&mut self, meta: &Value) {
        if meta.get(META_REVISION).is_some() {
            self.meta = without_progress(meta);
        }
    }

    /// The message of a request, which waits for its response from now on.
    pub(super) fn ask(&mut self, id: String, request: OwnRequest) -> Value {
        let OwnRequest { method, mut params, response } = request;
        if self.meta.is_object() {
            params["_meta"] = self.meta.clone();
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.waiting.insert(id, (response, Instant::now()));
        message
    }

    /// Who waits for the response with this id, and for how long.
    pub(super) fn take(&mut self, id: &str) -> Option<(oneshot::Sender<Value>, Duration)> {
        let (response, since) = self.waiting.remove(id)?;
        Some((response, since.elapsed()))
    }

    /// No process answers: a response that is dropped tells the author.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
