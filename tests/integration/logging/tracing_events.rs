//! `tracing` events of a call, sent to its client as log messages.

use std::{fmt, sync::Once};

use mcp_runtime::context::client_layer;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use super::asking;
use crate::prelude::*;

/// Once for all tests: calls run on many threads.
fn subscribe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // events of the framework too: the layer must filter them on its own
        let wanted = Targets::new()
            .with_target("integration::logging", tracing::Level::TRACE)
            .with_target("elsewhere", tracing::Level::TRACE)
            .with_target("mcp_runtime", tracing::Level::TRACE);
        tracing_subscriber::registry().with(wanted).with(client_layer()).init();
    });
}

/// Records an event without naming its request
#[mcp_tool]
fn plain(name: String) -> String {
    tracing::info!(name, length = name.len(), even = name.len().is_multiple_of(2), "plain");
    name
}

/// Records an event in each step
#[mcp_tool]
async fn steps() {
    tracing::warn!("first");
    tokio::task::yield_now().await;
    tracing::error!(ratio = 0.5, negative = -1, debug = ?Some(1), target = "x", "second");
    tracing::debug!(target: "elsewhere", "third");
    tracing::trace!("has no level of its own");
}

/// Records on another thread
#[mcp_tool(blocking)]
fn blocks() {
    tracing::info!("blocked");
}

/// Yields between events
#[mcp_tool(max_concurrency = 1)]
async fn yields(n: u32) {
    tracing::info!(n);
    tokio::task::yield_now().await;
}

/// Fails in private
#[mcp_tool]
fn fails() -> Result<(), ToolError> {
    tracing::error!(target: "mcp_runtime::pretended", "secret");
    Err(ToolError::private("secret"))
}

/// Records an event while it is being formatted.
struct Recursive;

impl fmt::Debug for Recursive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tracing::info!(inner = ?Self, "inner");
        f.write_str("recursive")
    }
}

/// Records an event whose field records an event
#[mcp_tool]
fn recurses() {
    tracing::info!(outer = ?Recursive);
}

/// Records an error with a cause
#[mcp_tool]
fn caused() {
    #[derive(Debug)]
    struct Cause(std::io::Error);
    impl fmt::Display for Cause {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("shown")
        }
    }
    impl std::error::Error for Cause {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let error = Cause(std::io::Error::other("secret"));
    tracing::error!(error = &error as &dyn std::error::Error);
}

/// Records an event in a spawned task
#[mcp_tool]
async fn spawns(ctx: &Context) -> bool {
    let ctx = ctx.clone();
    let task = spawn(async move {
        tracing::error!("outside of a call");
        ctx.is_cancelled()
    });
    task.await.unwrap_or(true)
}

fn builder() -> ServerBuilder {
    subscribe();
    mcp_runtime::server!().discover_in(module_path!())
}

fn logging() -> ServerBuilder {
    builder().telemetry(|telemetry| telemetry.client_logging())
}

/// The messages that a client with log level `debug` gets for a call, without the target of this file.
async fn seen(server: &TestServer, name: &str, arguments: Value) -> Vec<Value> {
    let mut params = asking(name, "debug");
    params["arguments"] = arguments;
    let reply = server.request("tools/call", params).await;
    assert!(!reply.to_string().contains("secret"), "{reply}");
    let message = |message: &Value| {
        let mut params = message["params"].clone();
        if params["logger"] == module_path!() {
            params["logger"].take();
        }
        params
    };
    reply.notifications().iter().map(message).collect()
}

#[tokio::test]
async fn events_are_sent_to_clients_that_set_a_level() {
    for (server, legacy) in [(serve(logging()), false), (serve(logging()).legacy(LEGACY[3]), true)] {
        if legacy {
            // a handshake alone sets no level
            assert!(seen(&server, "plain", json!({ "name": "abc" })).await.is_empty());
            server.request("logging/setLevel", json!({ "level": "debug" })).await.expect_ok();
        }
        let data = json!({ "message": "plain", "name": "abc", "length": 3, "even": false });
        let plain = json!({ "level": "info", "logger": null, "data": data });
        assert_eq!(seen(&server, "plain", json!({ "name": "abc" })).await, [plain]);
        let second =
            json!({ "message": "second", "ratio": 0.5, "negative": -1, "debug": "Some(1)", "target": "x" });
        let steps = [
            json!({ "level": "warning", "logger": null, "data": { "message": "first" } }),
            json!({ "level": "error", "logger": null, "data": second }),
            json!({ "level": "debug", "logger": "elsewhere", "data": { "message": "third" } }),
        ];
        assert_eq!(seen(&server, "steps", json!({})).await, steps);
        let blocked = json!({ "level": "info", "logger": null, "data": { "message": "blocked" } });
        assert_eq!(seen(&server, "blocks", json!({})).await, [blocked]);
    }
}

#[tokio::test]
async fn each_call_has_its_own_events() {
    let server = serve(logging());
    let calls = [1, 2, 3].map(|n| seen(&server, "yields", json!({ "n": n })));
    let [a, b, c] = calls;
    let (a, b, c) = tokio::join!(a, b, c);
    for (n, seen) in [(1, a), (2, b), (3, c)] {
        assert_eq!(seen, [json!({ "level": "info", "logger": null, "data": { "n": n } })]);
    }
}

#[tokio::test]
async fn private_events_are_not_sent() {
    let server = serve(logging());
    assert!(seen(&server, "fails", json!({})).await.is_empty(), "causes of private errors");
    assert_eq!(seen(&server, "caused", json!({})).await[0]["data"], json!({ "error": "shown" }));
    assert!(seen(&server, "spawns", json!({})).await.is_empty(), "a task belongs to no call");
    // without a level, or without logging on the server
    assert!(server.call("plain", json!({ "name": "abc" })).await.notifications().is_empty());
    assert!(seen(&serve(builder()), "plain", json!({ "name": "abc" })).await.is_empty());
}

#[tokio::test]
async fn an_event_inside_an_event_terminates() {
    let server = serve(logging());
    assert_eq!(seen(&server, "recurses", json!({})).await[0]["data"], json!({ "outer": "recursive" }));
}
