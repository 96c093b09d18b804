//! The call that the current thread works for: client requests are sent only from a poll of the call's own function, and
//! `tracing` events reach the client of that call.

use std::cell::RefCell;

use super::Context;

thread_local! {
    static CURRENT: RefCell<Option<CurrentCall>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct CurrentCall {
    context: Context,
    /// Whether the thread polls the call's future; otherwise it runs a blocking function that the call awaits.
    is_polled: bool,
}

/// Restores the thread's previous call on drop.
pub(crate) struct CurrentCallGuard(Option<CurrentCall>);

impl Context {
    /// Makes this call the current one of the thread that polls it.
    pub(crate) fn enter(&self) -> CurrentCallGuard {
        self.enter_as(true)
    }

    /// Makes this call the current one of a blocking thread, which cannot send client requests, but whose events belong
    /// to the call.
    pub(crate) fn enter_blocking(&self) -> CurrentCallGuard {
        self.enter_as(false)
    }

    fn enter_as(&self, is_polled: bool) -> CurrentCallGuard {
        CurrentCallGuard(CURRENT.replace(Some(CurrentCall { context: self.clone(), is_polled })))
    }

    /// Whether the thread polls this call.
    pub(crate) fn is_current(&self) -> bool {
        CURRENT.with_borrow(|current| {
            current.as_ref().is_some_and(|current| current.is_polled && current.context.is_same_request(self))
        })
    }

    /// The call that the thread works for.
    pub(crate) fn current() -> Option<Self> {
        // an event may be recorded while the thread's locals are destroyed
        let current =
            CURRENT.try_with(|current| current.try_borrow().ok()?.as_ref().map(|c| c.context.clone()));
        current.ok().flatten()
    }
}

impl Drop for CurrentCallGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
