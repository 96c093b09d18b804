//! Functions that an attribute names by path (`complete`, `list`, `subscribe`): which state they take, so that `build()`
//! can ask for it, and how they find it when they run.

use std::{fmt, future::Future};

use tokio::runtime::Handle;

use crate::{
    arguments::{BoxFuture, Inject, Probe, ProbeDyn},
    blocking::{GivenUp, run_blocking},
    context::Context,
    error::{Failure, ToolError},
    extensions::Extensions,
};

/// Hands a macro how many values such a function may take: type and variable of each.
macro_rules! any_number_of_values {
    ($implement:ident) => {
        $implement! {
            ;
            (A a);
            (A a)(B b);
            (A a)(B b)(C c);
        }
    };
}
pub(crate) use any_number_of_values;

/// What such a function gave; without a call to run in, only which state it takes.
pub struct Named<T> {
    pub(crate) takes: Vec<Inject>,
    pub(crate) outcome: Option<T>,
}

impl<T> Named<T> {
    pub(crate) fn takes(takes: Vec<Inject>) -> Self {
        Self { takes, outcome: None }
    }

    pub(crate) fn gave(outcome: T) -> Self {
        Self { takes: Vec::new(), outcome: Some(outcome) }
    }
}

impl<T> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("takes", &self.takes).finish_non_exhaustive()
    }
}

/// Where such a function finds what it takes: in the call's context, which may be taken itself.
pub(crate) struct Values {
    context: Context,
    own: Extensions,
}

impl Values {
    pub(crate) fn new(context: Context) -> Self {
        let mut own = Extensions::default();
        own.put(context.clone());
        Self { context, own }
    }

    /// # Errors
    /// No value of this type came with the request.
    pub(crate) fn find<S: ?Sized + 'static>(&self) -> Result<&S, Failure> {
        self.own.get().map_or_else(|| ProbeDyn::find(&Probe::<S>::new(), &self.context), Ok)
    }
}

/// Marks a plain function.
#[derive(Debug)]
pub struct Sync;
/// Marks an async function.
#[derive(Debug)]
pub struct Async;

/// Runs a future that need not be `Send` on the blocking pool: an async function that borrows its parameters has no
/// `Send` bound that can be written down.
pub(crate) fn elsewhere<T: Send + 'static>(
    body: impl FnOnce(Waiting) -> Result<T, Failure> + Send + 'static,
) -> BoxFuture<Result<T, Failure>> {
    Box::pin(run_blocking(move |given_up| body(Waiting { runtime: Handle::current(), given_up })))
}

/// A thread that waits for a future on behalf of a call.
pub(crate) struct Waiting {
    runtime: Handle,
    given_up: GivenUp,
}

impl Waiting {
    /// The future's output; it is dropped when the call is given up.
    pub(crate) fn wait<T>(self, future: impl Future<Output = T>) -> Result<T, Failure> {
        let Self { runtime, given_up } = self;
        runtime.block_on(async {
            tokio::select! {
                output = future => Ok(output),
                _ = given_up => Err(Failure::Body(ToolError::private("the call was given up"))),
            }
        })
    }
}
