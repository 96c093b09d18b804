//! The client of the tests. It speaks raw JSON, so that it can send what no correct client sends, over every transport:
//! in memory, over any pair of byte streams, over a child process's stdio, and over HTTP/1.1 on a socket. It answers
//! requests only as configured. Everything it waits for is limited: a test whose server is silent fails after ten minutes.

#![allow(missing_debug_implementations, reason = "connections have nothing to show")]

mod client;
mod events;
mod folder;
mod gate;
mod http;
mod http_sse;
mod issuer;
mod lines;
mod memory;
mod message;
mod peer;
mod printed;
mod server;
mod shared;
mod subscribed;

use std::{pin::Pin, time::Duration};

use tokio::task::JoinHandle;

pub use client::{Answers, Client, Exchange, Transport, no_requests};
pub use events::{Event, EventStream, events, messages};
pub use folder::TestFolder;
pub use gate::{Gate, Inside};
pub use http::{HttpConnection, HttpRequest, HttpResponse, narrow_socket};
pub use http_sse::HttpSse;
pub use issuer::{Issuer, TestKey, unix_now, unsigned};
pub use lines::{Input, LineConnection};
pub use memory::{ClientRequests, answering};
pub use message::{
    SUBSCRIPTION, call, cancelled, error_code, initialize, legacy_call, meta, notification, ping, request,
    text_of,
};
pub use peer::{Act, ClientStreams, Peer, discovered, initialized, play, refusal, response, with_handshake};
pub use printed::PrintedText;
pub use server::{HttpServer, serve_router, server_key, x_user};
pub use shared::{AnyStore, BreakableStore};
pub use subscribed::{Subscribed, subscribe};

/// After this, something hangs: far longer than anything takes on a machine with other work. Nothing else limits a wait for what
/// must happen.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Fails a test that hangs.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("the test hangs")
}

/// Waits until a condition is true; whether it is.
pub async fn soon(mut what: impl FnMut() -> bool) -> bool {
    let start = tokio::time::Instant::now();
    while start.elapsed() < PATIENCE {
        if what() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// Waits until a condition is true; fails the test if it never is.
pub async fn until(what: impl FnMut() -> bool) {
    assert!(soon(what).await, "it never comes to that");
}

/// Spawns a task. All futures with the same output share the code of a task, which is large.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(Box::pin(future) as Pin<Box<dyn Future<Output = T> + Send>>)
}

/// A text that no other call of this process returns.
pub fn unique() -> String {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}-{next}", std::process::id())
}
