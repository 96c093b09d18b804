//! The token that fires when nobody waits for a call any more. Owned by the running call, seen through `Context`.

use std::{
    fmt,
    pin::Pin,
    task::{Poll, ready},
};

use tokio::sync::watch;

/// Fires once; cloned into the context and the running call.
#[derive(Clone, Debug)]
pub(crate) struct Cancel(watch::Sender<bool>);

impl Default for Cancel {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Cancel {
    pub(crate) fn fire(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_fired(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) fn wait(&self) -> Cancelled {
        let mut receiver = self.0.subscribe();
        Cancelled(Box::pin(async move {
            // the sender outlives the call that waits here; a closed channel means that the call is over
            let _closed = receiver.wait_for(|fired| *fired).await;
        }))
    }
}

/// A future that ends when the client gives up; see [`Context::cancelled`](crate::Context::cancelled).
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
