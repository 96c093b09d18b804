//! The function of an item, annotated or given at run time, and how it is called.

use std::{
    any::Any,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::core::{
    arguments::{AnyArg, BoundRule, BoxFuture, Call, HandlerResult, TextLimit},
    blocking::run_blocking,
    callback::Callback,
    error::{Failure, ToolError},
    item_output::ItemOutput,
};

/// Decodes the arguments of a call and calls the user's function.
pub(crate) type Handler = fn(&Call<'_>) -> HandlerResult;

/// The handler of an item whose attribute has errors.
pub(crate) fn missing_handler(_: &Call<'_>) -> HandlerResult {
    Err(Failure::private("the item has no handler").into())
}

/// An annotated function, with the service value that a method is called on.
pub(crate) struct Function {
    pub(crate) handler: Handler,
    pub(crate) args: &'static [&'static dyn AnyArg],
    /// The rules over its arguments.
    pub(crate) rules: Vec<BoundRule>,
    pub(crate) this: Option<Arc<dyn Any + Send + Sync>>,
    /// The maximum cost of decoding arguments that are JSON in a text.
    pub(crate) text_limit: TextLimit,
    /// Whether the warning that it holds up its client was logged.
    slow_logged: AtomicBool,
    /// Whether a call of it was timed.
    pub(crate) was_timed: AtomicBool,
}

impl Function {
    pub(crate) fn new(
        handler: Handler,
        args: &'static [&'static dyn AnyArg],
        rules: Vec<BoundRule>,
        this: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        Self {
            handler,
            args,
            rules,
            this,
            text_limit: TextLimit::default(),
            slow_logged: AtomicBool::new(false),
            was_timed: AtomicBool::new(false),
        }
    }

    /// Whether the warning is still to be logged; `true` once.
    pub(crate) fn take_slow_warning(&self) -> bool {
        !self.slow_logged.swap(true, Ordering::Relaxed)
    }
}

/// Calls a function that was given at run time, with a `C`.
pub(crate) type DynHandler<C> = Callback<dyn Fn(C) -> BoxFuture<Result<ItemOutput, Failure>> + Send + Sync>;

/// The function of an item: annotated, or given at run time.
pub(crate) enum ItemFunction<C> {
    Annotated(Function),
    Runtime(DynHandler<C>),
}

impl<C> ItemFunction<C> {
    /// The parameters of an annotated function.
    pub(crate) fn args(&self) -> &'static [&'static dyn AnyArg] {
        match self {
            Self::Annotated(function) => function.args,
            Self::Runtime(_) => &[],
        }
    }
}

/// The return type of a handler.
#[diagnostic::on_unimplemented(
    message = "a handler returns a future, and this one returns `{Self}`",
    label = "does not return a future",
    note = "write `|call| async move {{ .. }}`; a plain closure goes to `blocking_handler`"
)]
pub trait AsyncReply {
    /// The output of the future.
    type Reply;
    /// The reply, once the future is ready.
    fn reply(self) -> impl Future<Output = Self::Reply> + Send
    where
        Self: Send;
}
#[diagnostic::do_not_recommend]
impl<F: Future> AsyncReply for F {
    type Reply = F::Output;

    fn reply(self) -> impl Future<Output = F::Output> + Send
    where
        F: Send,
    {
        self
    }
}

/// The handler that runs a closure as a future.
pub(crate) fn async_handler<C, R, F, Fut>(
    handler: F,
    convert: fn(Fut::Reply) -> Result<R, ToolError>,
) -> DynHandler<C>
where
    C: Send + 'static,
    R: Into<ItemOutput> + 'static,
    F: Fn(C) -> Fut + Send + Sync + 'static,
    Fut: AsyncReply + Send + 'static,
{
    let handler = Arc::new(handler);
    Callback(Arc::new(move |call| {
        let handler = handler.clone();
        // called in the first poll, where panics are caught
        Box::pin(async move { convert(handler(call).reply().await).map(Into::into).map_err(Failure::from) })
    }))
}

/// The handler that runs a closure on the blocking pool.
pub(crate) fn blocking_handler<C, R, F, T>(
    handler: F,
    convert: fn(T) -> Result<R, ToolError>,
) -> DynHandler<C>
where
    C: Send + 'static,
    R: Into<ItemOutput> + Send + 'static,
    T: 'static,
    F: Fn(C) -> T + Send + Sync + 'static,
{
    let handler = Arc::new(handler);
    Callback(Arc::new(move |call| {
        let handler = handler.clone();
        Box::pin(run_blocking(move || convert(handler(call)).map(Into::into).map_err(Failure::from)))
    }))
}
