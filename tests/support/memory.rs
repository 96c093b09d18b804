//! A client in memory that keeps what it is asked.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_runtime::testing::TestServer;
use serde_json::Value;

/// The requests that a client was sent: `method` and `params`, oldest first.
#[derive(Debug, Clone, Default)]
pub struct ClientRequests(Arc<Mutex<Vec<(String, Value)>>>);

impl ClientRequests {
    /// Those since the last time.
    pub fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The same connection of a client with these capabilities, which answers so; and what it is asked.
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
