//! How a function leaves its request before it returns: a method of its context records a [`Suspension`] there, and stays
//! pending. `invoke` takes it after each poll of the function; only the code that records one knows which kind it is.

use super::{Context, ContextInner};
use crate::dispatch::{Response, SuspendedCall};

/// Why a pending function cannot continue in the request that called it.
pub(crate) trait Suspension: Send {
    /// Whether it ends one run of the function, such that layers see it as the outcome of that run; otherwise the whole
    /// call leaves its request, with its layers.
    fn ends_run(&self) -> bool;

    /// Answers the request.
    fn respond(self: Box<Self>, call: Box<dyn SuspendedCall>) -> Response;
}

impl Context {
    /// Suspends the call after the current poll of its function, unless a poll before has suspended it.
    pub(crate) fn suspend(&self, suspension: impl Suspension + 'static) {
        let mut recorded = self.call().suspension.lock();
        // a function that polls several futures at once may do both: then its run ends
        if suspension.ends_run() || recorded.is_none() {
            *recorded = Some(Box::new(suspension));
        }
    }

    /// What the last poll of the function has recorded, of the function that uses this context.
    pub(crate) fn take_suspension(&self) -> Option<Box<dyn Suspension>> {
        let ContextInner { suspension, .. } = self.call();
        let is_run = self.inner().parent.is_some();
        suspension.lock().take_if(|suspension| suspension.ends_run() || !is_run)
    }
}
