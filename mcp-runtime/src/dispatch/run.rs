//! Runs a user's function: in place if it is ready at once, else as a future with its limit; panics are contained.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use super::Status;
use crate::{
    context::{Cancel, Context},
    def::Handler,
    extract::{AnyArg, Call, CallParts, Flow, Input, Outcome, Variable},
    jsonrpc::{ProtocolError, error_reply},
    reply::{Failure, ToolError},
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How far a request has come when `begin` returns.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The reply was appended.
    Done(#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has statuses"))] Status),
    /// The function is still running.
    Running(Running),
}

/// The reply of a call that took its time.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) bytes: Vec<u8>,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has statuses"))]
    pub(crate) status: Status,
}

/// A call that is still running; dropping it cancels it.
pub(crate) struct Running {
    /// Raw JSON of the request's id, for the reply to a call that ends in a panic of its own making.
    id: Box<str>,
    future: BoxFuture<Finished>,
    cancel: Cancel,
    over: bool,
}

impl Running {
    pub(super) fn new(
        id: &str,
        future: impl Future<Output = Finished> + Send + 'static,
        cancel: Cancel,
    ) -> Self {
        Self { id: id.into(), future: Box::pin(future), cancel, over: false }
    }

    /// The token that fires when the call is given up.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "elsewhere a call is given up by dropping it")
    )]
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Future for Running {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Finished> {
        let this = &mut *self;
        // what is left to panic here is the drop of something of the user's
        let polled =
            catch_unwind(AssertUnwindSafe(|| this.future.as_mut().poll(cx))).unwrap_or_else(|panic| {
                let mut bytes = Vec::new();
                let status = lost(&this.id, &*panic, &mut bytes);
                discard(panic);
                Poll::Ready(Finished { status, bytes })
            });
        self.over = polled.is_ready();
        polled
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            self.cancel.fire();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

/// Polls with every panic turned into a private failure, and drops without any.
struct Contained<R>(Option<BoxFuture<Result<R, Failure>>>);

impl<R> Future for Contained<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panicked(panic))))
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

impl<R> Drop for Contained<R> {
    fn drop(&mut self) {
        // what the function holds may panic when its call is given up
        discard(self.0.take());
    }
}

/// Drops a value of the user's; a panic in that is the end of it, and not of the connection.
fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // it could panic once more
        std::mem::forget(panic);
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let error = ToolError::private(format!("panicked: {}", message_of(&*panic)));
    discard(panic);
    Failure::Body(error)
}

/// Enters a handler; what it panics with is a private failure. Also gives the context, if one was made.
pub(super) fn enter<R>(handler: Handler<R>, parts: CallParts<'_>) -> (Outcome<R>, Option<Context>) {
    let mut call = Call::new(parts);
    let outcome =
        catch_unwind(AssertUnwindSafe(|| handler(&mut call))).unwrap_or_else(|panic| Err(panicked(panic)));
    (outcome, call.into_context())
}

/// Enters a handler whose arguments are strings; gives the token of its context, if one was made.
pub(super) fn enter_text<R>(
    handler: Handler<R>,
    args: &[&'static dyn AnyArg],
    values: &[(String, Variable)],
    this: Option<&Arc<dyn Any + Send + Sync>>,
    context: &dyn Fn() -> Context,
) -> (Outcome<R>, Option<Cancel>) {
    let input = Input::Text(values);
    let parts = CallParts { input, args, strict: false, tool: None, validator: None, this, context };
    let (outcome, context) = enter(handler, parts);
    (outcome, context.map(|context| context.inner().cancel.clone()))
}

/// How a call goes on after its handler was entered.
pub(super) struct Drive<'a> {
    /// Raw JSON of the request's id.
    pub(super) id: &'a str,
    pub(super) cancel: Option<Cancel>,
    pub(super) limit: Option<(Duration, String)>,
}

/// Brings an outcome to its reply: `finish` writes it, now or when the future is done.
pub(super) fn drive<R: Send + 'static>(
    outcome: Outcome<R>,
    drive: Drive<'_>,
    out: &mut Vec<u8>,
    finish: impl FnOnce(Result<R, Failure>, &str, &mut Vec<u8>) -> Status + Send + 'static,
) -> Begun {
    // most functions are ready at once; they need no task, no timer and no copy of the id
    let ready = match outcome {
        Ok(Flow::Ready(result)) => Ok(Ok(result)),
        Err(failure) => Ok(Err(failure)),
        Ok(Flow::Pending(future)) => {
            let mut future = Contained(Some(future));
            match Pin::new(&mut future).poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Ready(result) => Ok(result),
                Poll::Pending => Err(future),
            }
        }
    };
    let future = match ready {
        Err(future) => future,
        Ok(result) => {
            if let Some(cancel) = &drive.cancel {
                cancel.end();
            }
            return Begun::Done(settle(finish, result, drive.id, out));
        }
    };
    let id: Box<str> = drive.id.into();
    let limit = drive.limit;
    let cancel = drive.cancel.unwrap_or_default();
    let token = cancel.clone();
    Begun::Running(Running::new(
        drive.id,
        async move {
            let result = limited(future, limit, &token).await;
            token.end();
            let mut bytes = Vec::with_capacity(256);
            let status = settle(finish, result, &id, &mut bytes);
            Finished { bytes, status }
        },
        cancel,
    ))
}

/// Writes the reply; a panic in it (an error's own `Display`, say) costs this reply and nothing else.
fn settle<R>(
    finish: impl FnOnce(Result<R, Failure>, &str, &mut Vec<u8>) -> Status,
    result: Result<R, Failure>,
    id: &str,
    out: &mut Vec<u8>,
) -> Status {
    let start = out.len();
    catch_unwind(AssertUnwindSafe(|| finish(result, id, out))).unwrap_or_else(|panic| {
        out.truncate(start);
        let status = lost(id, &*panic, out);
        discard(panic);
        status
    })
}

/// Answers a call whose reply was lost to a panic.
fn lost(id: &str, panic: &(dyn Any + Send), out: &mut Vec<u8>) -> Status {
    tracing::error!(error = message_of(panic), "panicked while a reply was written");
    error_reply(out, Some(id), &ProtocolError::internal("the reply could not be written"));
    Status::Ok
}

/// Waits for a future, at most as long as its limit; a thread that outlives the limit sees its token fire.
async fn limited<R>(
    future: impl Future<Output = Result<R, Failure>>,
    limit: Option<(Duration, String)>,
    cancel: &Cancel,
) -> Result<R, Failure> {
    match limit {
        None => future.await,
        Some((limit, what)) => tokio::time::timeout(limit, future).await.unwrap_or_else(|_| {
            cancel.fire();
            Err(Failure::Body(ToolError::new(format!("{what} took longer than its limit of {limit:?}"))))
        }),
    }
}

/// Runs an outcome to its end, for calls that had to wait before they were entered.
pub(super) async fn complete<R>(
    outcome: Outcome<R>,
    limit: Option<(Duration, String)>,
    cancel: &Cancel,
) -> Result<R, Failure> {
    match outcome? {
        Flow::Ready(result) => Ok(result),
        Flow::Pending(future) => limited(Contained(Some(future)), limit, cancel).await,
    }
}
