//! The cancellation of a call: by its client, by a time limit, or because it has its result.

use std::{
    fmt,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Fires once, unless the call ends before. Whatever waits for it is woken in both cases.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    token: CancellationToken,
    /// The function has returned without having been cancelled.
    over: AtomicBool,
}

impl Cancel {
    pub(crate) fn fire(&self) {
        self.token.cancel();
    }

    /// The call has its result: nothing more is sent for it.
    pub(crate) fn end(&self) {
        if self.is_running() {
            self.over.store(true, Ordering::Relaxed);
            self.token.cancel();
        }
    }

    pub(crate) fn is_fired(&self) -> bool {
        self.token.is_cancelled() && !self.over.load(Ordering::Relaxed)
    }

    /// Whether the call has neither been cancelled nor ended.
    pub(crate) fn is_running(&self) -> bool {
        !self.token.is_cancelled()
    }

    pub(crate) fn wait(&self) -> Cancelled {
        Cancelled(Box::pin(self.token.clone().cancelled_owned()))
    }
}

/// A call whose context is dropped is over: work that waits elsewhere must not wait forever.
impl Drop for Cancel {
    fn drop(&mut self) {
        self.end();
    }
}

/// A future that ends when the client gives up, or the call is over; see [`Context::cancelled`](crate::Context::cancelled).
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled(Pin<Box<WaitForCancellationFutureOwned>>);

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancelled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_call_that_still_runs_is_cancelled_but_its_end_wakes_as_well() {
        let (cancelled, ended, dropped) = (Cancel::default(), Cancel::default(), Cancel::default());
        let waiting = [&cancelled, &ended, &dropped].map(Cancel::wait);
        cancelled.fire();
        cancelled.end();
        ended.end();
        ended.fire();
        drop(dropped);
        assert!(cancelled.is_fired() && !cancelled.is_running());
        assert!(!ended.is_fired() && !ended.is_running());
        for wait in waiting {
            wait.await;
        }
    }
}
