//! The cancellation of a call: by its client, by a time limit, or because it has its result.

use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Cancels a call once, unless it completes first. Waiting tasks are woken in both cases.
#[derive(Default)]
pub(crate) struct CallCancellation {
    token: CancellationToken,
    /// The function has returned without having been cancelled.
    over: AtomicBool,
}

impl CallCancellation {
    /// A cancellation that this one triggers too, and which does not trigger this one.
    pub(crate) fn child(&self) -> Self {
        Self { token: self.token.child_token(), over: AtomicBool::new(false) }
    }

    pub(crate) fn cancel(&self) {
        self.token.cancel();
    }

    /// Marks the call as completed: nothing more is sent for it.
    pub(crate) fn complete(&self) {
        if self.is_running() {
            self.over.store(true, Ordering::Relaxed);
            self.token.cancel();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.token.is_cancelled() && !self.over.load(Ordering::Relaxed)
    }

    /// Whether the call has neither been cancelled nor ended.
    pub(crate) fn is_running(&self) -> bool {
        !self.token.is_cancelled()
    }

    pub(crate) fn cancelled(&self) -> Cancelled {
        Cancelled(Box::pin(self.token.clone().cancelled_owned()))
    }
}

/// A call whose context is dropped has completed: work that waits for it elsewhere must not wait forever.
impl Drop for CallCancellation {
    fn drop(&mut self) {
        self.complete();
    }
}

/// Resolves when the client cancels the call, or the call completes; see [`Context::cancelled`](crate::Context::cancelled).
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Cancelled(Pin<Box<WaitForCancellationFutureOwned>>);

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_running_call_is_cancelled_and_its_completion_wakes_waiters_too() {
        let (cancelled, completed, dropped) =
            (CallCancellation::default(), CallCancellation::default(), CallCancellation::default());
        let waiting = [&cancelled, &completed, &dropped].map(CallCancellation::cancelled);
        cancelled.cancel();
        cancelled.complete();
        completed.complete();
        completed.cancel();
        drop(dropped);
        assert!(cancelled.is_cancelled() && !cancelled.is_running());
        assert!(!completed.is_cancelled() && !completed.is_running());
        for wait in waiting {
            wait.await;
        }
    }
}
