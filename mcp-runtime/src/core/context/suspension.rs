//! How a function leaves its request before it returns: a method of its context records a [`Suspension`] there, and stays
//! pending. `invoke` takes it after each poll of the function; only the code that records one knows which kind it is.

use std::{future::poll_fn, sync::Arc, task::Poll};

use super::{Context, ContextInner};
use crate::core::{
    dispatch::{Response, SuspendedCall},
    jsonrpc::{Meta, ProtocolError},
    protocol::Revision,
};

/// Why a pending function cannot continue in the request that called it.
pub(crate) struct Suspension {
    /// Whether it ends one run of the function, such that layers see it as the outcome of that run; otherwise the whole
    /// call leaves its request, with its layers.
    pub(crate) ends_run: bool,
    /// Answers the request.
    pub(crate) respond: Box<dyn FnOnce(Box<SuspendedCall>) -> Response + Send>,
}

/// How the calls of an item continue outside of their requests.
pub(crate) trait Continuation: Send + Sync {
    /// Whether the call of a request may.
    ///
    /// # Errors
    /// It has to, and its client does not support that.
    fn admit(&self, meta: &Meta<'_>, revision: Revision) -> Result<bool, ProtocolError>;

    /// Whether they do before their functions begin. Then they wait for the item's permits there, not in their requests.
    fn starts_at_once(&self) -> bool;

    /// Suspends the call of this context, to continue it.
    fn suspend(&self, context: &Context);

    /// Lets the call of a new context continue in this way.
    fn prepare(self: Arc<Self>, context: &Context);

    /// Whether the call has been admitted and was begun before, in another process.
    fn is_resumed(&self) -> bool {
        false
    }
}

impl Context {
    /// Suspends the call after the current poll of its function, unless that has suspended it already.
    pub(crate) fn suspend(&self, suspension: Suspension) {
        let mut recorded = self.call().suspension.lock();
        // a function that polls several futures at once may do both: then its run ends
        if suspension.ends_run || recorded.is_none() {
            *recorded = Some(suspension);
        }
    }

    /// Takes the suspension that the last poll of the function with this context recorded.
    pub(crate) fn take_suspension(&self) -> Option<Suspension> {
        let ContextInner { suspension, .. } = self.call();
        let is_run = self.inner().parent.is_some();
        suspension.lock().take_if(|suspension| suspension.ends_run || !is_run)
    }

    /// Continues the call outside of its request, if it may; returns whether it is outside from here on.
    pub(crate) async fn leave_request(&self) -> bool {
        poll_fn(|cx| {
            let ContextInner { client_requests, continuation, .. } = self.call();
            if client_requests.task().is_some() {
                return Poll::Ready(true);
            }
            match continuation.get() {
                Some(continuation) if self.is_current() => continuation.suspend(self),
                _ => return Poll::Ready(false),
            }
            // it is polled again as soon as the call has left its request
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }
}
