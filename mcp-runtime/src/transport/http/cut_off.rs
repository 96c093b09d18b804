//! The end of the shutdown timeout, at which calls that are still running are answered with an error.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::core::spawn::spawn_on;

/// Fires once.
#[derive(Debug, Clone)]
pub(super) struct CutOff {
    /// Read for each poll of a response, which must not take a lock.
    fired: Arc<AtomicBool>,
    token: CancellationToken,
    /// Whether connections poll their responses when it fires, so that responses need not wait for it.
    is_polled: bool,
}

/// The future with which a response waits for the cut-off.
pub(super) type CutOffWaiter = Option<Pin<Box<WaitForCancellationFutureOwned>>>;

impl CutOff {
    pub(super) fn new(is_polled: bool) -> Self {
        Self { fired: Arc::default(), token: CancellationToken::new(), is_polled }
    }

    pub(super) fn fire(&self) {
        self.fired.store(true, Ordering::Release);
        self.token.cancel();
    }

    /// Fires after that time.
    pub(super) fn fire_after(&self, time: Duration) {
        let Ok(runtime) = Handle::try_current() else {
            tracing::warn!(
                "calls that are still running will not be ended: no runtime was entered by `stop()`"
            );
            return;
        };
        let this = self.clone();
        spawn_on(&runtime, async move {
            sleep(time).await;
            this.fire();
        });
    }

    pub(super) fn has_fired(&self) -> bool {
        self.fired.load(Ordering::Acquire)
    }

    /// Whether it has fired; the task of a response is woken when it does.
    pub(super) fn poll(&self, waiter: &mut CutOffWaiter, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_fired() {
            return Poll::Ready(());
        }
        if self.is_polled {
            return Poll::Pending;
        }
        waiter.get_or_insert_with(|| Box::pin(self.token.clone().cancelled_owned())).as_mut().poll(cx)
    }

    /// Waits until it fires.
    pub(super) async fn wait(&self) {
        self.token.cancelled().await;
    }
}
