//! Resilience against clients that attack a server, stop reading, or time out as the official ones do. This file has
//! the shared helpers.

mod alternatives;
mod bounds;
mod callers;
mod expiry;
mod framing;
mod long_arguments;
mod options;
mod owners;
mod permits;
mod proxies;
mod slow_clients;
mod stdio;
mod subscriptions;
mod unread;

use crate::prelude::*;

/// Long enough for a server to do what it must not do.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// A modern call over HTTP.
fn modern(tool: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({ "name": tool }))
}

/// The same with a progress token.
fn with_progress(tool: &str) -> HttpRequest {
    let params = json!({ "name": tool, "_meta": { "progressToken": 1 } });
    HttpRequest::modern(1, "tools/call", params)
}

/// Returns at once
#[mcp_tool]
fn here() -> &'static str {
    "here"
}

/// Waits until it is released
#[mcp_tool]
async fn wait(gate: &Gate) -> &'static str {
    gate.pass().await
}

/// For administrators
#[mcp_tool(scopes("admin"))]
fn purge() -> &'static str {
    "purged"
}

/// A gate that opens at the end of its test, so that no thread stays blocked.
#[derive(Default)]
struct TestGate(Gate);

impl std::ops::Deref for TestGate {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.0
    }
}

impl Drop for TestGate {
    fn drop(&mut self) {
        self.0.open_for_all();
    }
}
