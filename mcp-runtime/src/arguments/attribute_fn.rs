//! Functions that an attribute names by path (`complete`, `list`, `subscribe`): what they inject, so that `build()` can
//! check that it is registered, and how they run.

use std::{fmt, future::Future};

use tokio::runtime::Handle;

use super::{
    BoxFuture,
    inject::{Inject, Probe, ProbeDyn},
};
use crate::{
    blocking::{CallDropped, run_blocking},
    context::Context,
    error::{Failure, ToolError},
    extensions::Extensions,
};

/// Calls a macro with the type and variable of each injected parameter, for every number of them that is supported.
macro_rules! for_each_arity {
    ($implement:ident) => {
        $implement! {
            ;
            (A a);
            (A a)(B b);
            (A a)(B b)(C c);
        }
    };
}
pub(crate) use for_each_arity;

/// A function that an attribute names: what it returned, or, if it was not called, what it injects.
pub struct AttributeFn<T> {
    pub(crate) injects: Vec<Inject>,
    pub(crate) outcome: Option<T>,
}

impl<T> AttributeFn<T> {
    pub(crate) fn with_injects(injects: Vec<Inject>) -> Self {
        Self { injects, outcome: None }
    }

    pub(crate) fn with_outcome(outcome: T) -> Self {
        Self { injects: Vec::new(), outcome: Some(outcome) }
    }
}

impl<T> fmt::Debug for AttributeFn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttributeFn").field("injects", &self.injects).finish_non_exhaustive()
    }
}

/// The values that a function named by an attribute can take by reference: the call's context, and what it provides.
pub(crate) struct InjectedValues {
    context: Context,
    context_by_type: Extensions,
}

impl InjectedValues {
    pub(crate) fn new(context: Context) -> Self {
        let mut context_by_type = Extensions::default();
        context_by_type.insert(context.clone());
        Self { context, context_by_type }
    }

    /// # Errors
    /// No value of this type came with the request.
    pub(crate) fn find<S: ?Sized + 'static>(&self) -> Result<&S, Failure> {
        self.context_by_type.get().map_or_else(|| ProbeDyn::find(&Probe::<S>::new(), &self.context), Ok)
    }
}

/// Marks a plain function.
#[derive(Debug)]
pub struct Sync;
/// Marks an async function.
#[derive(Debug)]
pub struct Async;

/// Runs a future that need not be `Send` on the blocking pool: stable Rust has no way to require that the future of an
/// async function with borrowed parameters is `Send`.
pub(crate) fn run_on_blocking_thread<T: Send + 'static>(
    body: impl FnOnce(BlockingThread) -> Result<T, Failure> + Send + 'static,
) -> BoxFuture<Result<T, Failure>> {
    Box::pin(run_blocking(move |call_dropped| {
        body(BlockingThread { runtime: Handle::current(), call_dropped })
    }))
}

/// A thread of the blocking pool that waits for a future on behalf of a call.
pub(crate) struct BlockingThread {
    runtime: Handle,
    call_dropped: CallDropped,
}

impl BlockingThread {
    /// The future's output; the future is dropped when the call is.
    pub(crate) fn block_on<T>(self, future: impl Future<Output = T>) -> Result<T, Failure> {
        let Self { runtime, call_dropped } = self;
        runtime.block_on(async {
            tokio::select! {
                output = future => Ok(output),
                _ = call_dropped => Err(Failure::Body(ToolError::private("the call was cancelled"))),
            }
        })
    }
}
