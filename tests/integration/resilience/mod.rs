//! Resilience against clients that attack a server, stop reading, or time out as the official ones do. This file has
//! the shared helpers.

mod alternatives;
mod bounds;
mod callers;
mod expiry;
mod framing;
mod legacy;
mod long_arguments;
mod options;
mod owners;
mod permits;
mod proxies;
mod slow_clients;
mod stdio;
mod subscriptions;
mod unread;

use std::sync::{Condvar, MutexGuard, PoisonError};

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

/// Blocks the threads of functions until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Threads>, Condvar)>);

#[derive(Default)]
struct Threads {
    entered: usize,
    returned: usize,
    open: bool,
}

impl Gate {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until the gate is open; called by functions.
    fn pass(&self) {
        let mut threads = self.threads();
        threads.entered += 1;
        let limit = PATIENCE;
        let waited = self.0.1.wait_timeout_while(threads, limit, |threads| !threads.open);
        let (mut threads, _) = waited.unwrap_or_else(PoisonError::into_inner);
        threads.returned += 1;
    }

    fn entered(&self) -> usize {
        self.threads().entered
    }

    fn returned(&self) -> usize {
        self.threads().returned
    }

    fn open(&self) {
        self.threads().open = true;
        self.0.1.notify_all();
    }
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
        self.0.open();
    }
}
