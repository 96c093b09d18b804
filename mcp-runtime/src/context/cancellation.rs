//! Cancellation of one call.

use std::{
    fmt,
    pin::Pin,
    task::{Poll, ready},
};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Cancelled,
    /// The function has returned.
    Completed,
}

/// Fires once, unless the call completes first; clones share one token.
#[derive(Clone, Debug)]
pub(crate) struct CancellationToken(watch::Sender<Stage>);

impl Default for CancellationToken {
    fn default() -> Self {
        Self(watch::Sender::new(Stage::Running))
    }
}

impl CancellationToken {
    pub(crate) fn cancel(&self) {
        self.set(Stage::Cancelled);
    }

    /// Marks the call as completed: it can no longer be cancelled, and nothing more is sent for it.
    pub(crate) fn complete(&self) {
        self.set(Stage::Completed);
    }

    fn set(&self, next: Stage) {
        self.0.send_if_modified(|stage| {
            let running = *stage == Stage::Running;
            if running {
                *stage = next;
            }
            running
        });
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.0.borrow() == Stage::Cancelled
    }

    /// Whether the call runs and is not cancelled.
    pub(crate) fn is_running(&self) -> bool {
        *self.0.borrow() == Stage::Running
    }

    pub(crate) fn cancelled(&self) -> Cancelled {
        let mut receiver = self.0.subscribe();
        Cancelled(Box::pin(async move {
            // the channel closes only after the call
            let _closed = receiver.wait_for(|stage| *stage != Stage::Running).await;
        }))
    }
}

/// Resolves when the client cancels the call, or the call completes; see [`Context::cancelled`](crate::Context::cancelled).
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        ready!(self.0.as_mut().poll(cx));
        Poll::Ready(())
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancelled")
    }
}
