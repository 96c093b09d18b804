//! Which call the running thread is polling. Dispatch enters a context around each poll of a user's function.

use std::cell::RefCell;

use super::Context;

thread_local! {
    static CURRENT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Until it is dropped, this thread works for one call.
#[derive(Debug)]
pub(crate) struct Entered(Option<Context>);

impl Context {
    /// Marks this call as the one that the thread works for.
    pub(crate) fn enter(&self) -> Entered {
        Entered(CURRENT.replace(Some(self.clone())))
    }

    /// Whether the thread works for this call right now.
    pub(crate) fn is_current(&self) -> bool {
        CURRENT.with_borrow(|current| current.as_ref().is_some_and(|context| context.is(self)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
