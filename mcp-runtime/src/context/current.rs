//! Which call the running thread works for: client requests are sent only from a poll of the call's own function, and
//! `tracing` events reach the client of that call.

use std::cell::RefCell;

use super::Context;

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

#[derive(Debug, Clone)]
struct Current {
    context: Context,
    /// Whether the call's own future is polled, and not just something that it awaits.
    polled: bool,
}

/// Until it is dropped, this thread works for one call.
#[derive(Debug)]
pub(crate) struct Entered(Option<Current>);

impl Context {
    /// Marks this call as the one that the thread works for.
    pub(crate) fn enter(&self) -> Entered {
        self.enter_as(true)
    }

    /// The same for a thread that the call awaits: it cannot send client requests, but its events belong to the call.
    pub(crate) fn enter_beside(&self) -> Entered {
        self.enter_as(false)
    }

    fn enter_as(&self, polled: bool) -> Entered {
        Entered(CURRENT.replace(Some(Current { context: self.clone(), polled })))
    }

    /// Whether the thread polls this call right now.
    pub(crate) fn is_current(&self) -> bool {
        CURRENT.with_borrow(|current| {
            current.as_ref().is_some_and(|current| current.polled && current.context.is(self))
        })
    }

    /// The call that the thread works for.
    pub(crate) fn current() -> Option<Self> {
        // an event may be recorded while the thread ends and its locals are destroyed
        let current =
            CURRENT.try_with(|current| current.try_borrow().ok()?.as_ref().map(|c| c.context.clone()));
        current.ok().flatten()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
