//! An in-memory client that records the requests it receives.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_runtime::testing::TestServer;
use serde_json::Value;

/// The requests that a client received: `method` and `params`, oldest first.
#[derive(Debug, Clone, Default)]
pub struct ClientRequests(Arc<Mutex<Vec<(String, Value)>>>);

impl ClientRequests {
    /// The requests since the last call.
    pub fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The same connection as a client with these capabilities and answers, and the requests that it receives.
pub fn answering(
    server: TestServer,
    capabilities: Value,
    answer: impl Fn(&str, &Value) -> Result<Value, String> + Send + Sync + 'static,
) -> (TestServer, ClientRequests) {
    let requests = ClientRequests::default();
    let seen = requests.clone();
    let server = server.answering(capabilities, move |method, params| {
        let mut seen = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((method.to_owned(), params.clone()));
        drop(seen);
        answer(method, params)
    });
    (server, requests)
}
