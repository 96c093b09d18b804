//! The token that fires when nobody waits for a call any more. Owned by the running call, seen through `Context`.

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
    Over,
}

/// Fires once, unless the call ends before; cloned into the context and the running call.
#[derive(Clone, Debug)]
pub(crate) struct Cancel(watch::Sender<Stage>);

impl Default for Cancel {
    fn default() -> Self {
        Self(watch::Sender::new(Stage::Running))
    }
}

impl Cancel {
    pub(crate) fn fire(&self) {
        self.leave_for(Stage::Cancelled);
    }

    /// The call has its result: nothing more is sent for it, and nobody waits for its cancellation any more.
    pub(crate) fn end(&self) {
        self.leave_for(Stage::Over);
    }

    fn leave_for(&self, next: Stage) {
        self.0.send_if_modified(|stage| {
            let running = *stage == Stage::Running;
            if running {
                *stage = next;
            }
            running
        });
    }

    pub(crate) fn is_fired(&self) -> bool {
        *self.0.borrow() == Stage::Cancelled
    }

    /// Whether the call still runs for somebody.
    pub(crate) fn is_running(&self) -> bool {
        *self.0.borrow() == Stage::Running
    }

    pub(crate) fn wait(&self) -> Cancelled {
        let mut receiver = self.0.subscribe();
        Cancelled(Box::pin(async move {
            // the sender outlives the call that waits here; a closed channel means that the call is over
            let _closed = receiver.wait_for(|stage| *stage != Stage::Running).await;
        }))
    }
}

/// A future that ends when the client gives up, or the call is over; see [`Context::cancelled`](crate::Context::cancelled).
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
