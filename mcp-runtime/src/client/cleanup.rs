//! Messages without a reader, such as the cancellation of a call that was dropped: sent in the background, a few at a
//! time, each within a time limit. A server that does not take them costs neither connections nor memory.

use std::{collections::VecDeque, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::timeout};

use crate::core::sync::Mutex;

/// Messages that are sent at once, where each takes a connection.
const CONNECTIONS: usize = 8;
/// Messages that wait for room; more are not sent.
const MAX_WAITING: usize = 4096;
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long closing a connection waits for what is being sent.
pub(in crate::client) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

type BackgroundFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The background messages of one connection.
pub(in crate::client) struct Cleanup {
    at_once: usize,
    state: Mutex<CleanupState>,
    /// A worker has ended.
    ended: Notify,
}

#[derive(Default)]
struct CleanupState {
    waiting: VecDeque<BackgroundFuture>,
    running: usize,
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup").finish_non_exhaustive()
    }
}

impl Cleanup {
    /// Messages that each take a connection.
    pub(in crate::client) fn by_connection() -> Arc<Self> {
        Arc::new(Self { at_once: CONNECTIONS, state: Mutex::default(), ended: Notify::new() })
    }

    /// Messages that share a stream: in their order, and before what is sent later.
    pub(in crate::client) fn on_stream() -> Arc<Self> {
        Arc::new(Self { at_once: MAX_WAITING, state: Mutex::default(), ended: Notify::new() })
    }

    /// Waits until every message is sent that was given up to now, at most for so long.
    pub(in crate::client) async fn flush(&self, limit: Duration) {
        let idle = async {
            loop {
                let ended = self.ended.notified();
                if self.state.lock().running == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _late = timeout(limit, idle).await;
    }

    /// Sends a message when there is room. Without a runtime, nothing is sent.
    pub(in crate::client) fn spawn(self: &Arc<Self>, message: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        {
            let mut state = self.state.lock();
            if state.waiting.len() >= MAX_WAITING {
                return tracing::debug!("the server does not take messages: a cancellation is not sent");
            }
            state.waiting.push_back(Box::pin(message));
            if state.running >= self.at_once {
                return;
            }
            state.running += 1;
        }
        let mut worker = Worker { cleanup: self.clone(), has_ended: false };
        runtime.spawn(async move {
            while let Some(message) = worker.next() {
                // a server that is slow does not get it
                let _late = timeout(TIME_LIMIT, message).await;
            }
        });
    }
}

/// Sends one message after the other; gives its place back also if its runtime ends.
struct Worker {
    cleanup: Arc<Cleanup>,
    has_ended: bool,
}

impl Worker {
    fn next(&mut self) -> Option<BackgroundFuture> {
        let mut state = self.cleanup.state.lock();
        let next = state.waiting.pop_front();
        if next.is_none() {
            // under the same lock, so that a message that comes now begins another worker
            state.running -= 1;
            self.has_ended = true;
            self.cleanup.ended.notify_waiters();
        }
        next
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut state = self.cleanup.state.lock();
        state.running -= 1;
        // the runtime has ended: messages own their connection, which would never be dropped
        let unsent = if state.running == 0 { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
        drop(state);
        drop(unsent);
    }
}
