//! What a handler returns: a result, or a future of one, whichever kind of function it calls.

use std::future::Future;

use crate::{arguments::BoxFuture, blocking::run_blocking, context::Context, error::Failure};

/// What a handler returns: a failure, a result, or a future of one.
pub type HandlerResult<R> = Result<MaybeFuture<R>, Failure>;

/// A result that is ready, or a future of one.
#[allow(missing_debug_implementations)] // holds a future
pub enum MaybeFuture<R> {
    /// The function has returned.
    Ready(R),
    /// The function is async, or runs on another thread.
    Pending(BoxFuture<Result<R, Failure>>),
}

/// The outcome of a plain function.
///
/// # Errors
/// The failure in `result`.
pub fn ready<R>(result: Result<R, Failure>) -> HandlerResult<R> {
    result.map(MaybeFuture::Ready)
}

/// The outcome of an async function.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn pending<R>(future: impl Future<Output = Result<R, Failure>> + Send + 'static) -> HandlerResult<R> {
    Ok(MaybeFuture::Pending(Box::pin(future)))
}

/// Runs a plain function on the blocking pool.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn blocking<R: Send + 'static>(
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> HandlerResult<R> {
    pending(run_blocking(|_| body()))
}

/// Runs a plain function on the blocking pool, as a task if the call may become one.
///
/// # Errors
/// Never fails; the type is that of handlers.
pub fn blocking_task<R: Send + 'static>(
    context: Context,
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> HandlerResult<R> {
    pending(async move {
        context.start_task().await;
        run_blocking(|_| body()).await
    })
}
