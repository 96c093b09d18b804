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

use tokio::time::{Instant, sleep};

use super::{Listening, Status, reply::Frame, round::Subject};
use crate::{
    ask::required,
    context::{Cancel, Context},
    def::Handler,
    extract::{AnyArg, Call, CallParts, Flow, Input, Outcome, Variable},
    jsonrpc::{ProtocolError, error_reply},
    protocol::{INVALID_PARAMS, RESOURCE_NOT_FOUND, Revision, URL_ELICITATION_REQUIRED},
    reply::{Failure, ToolError},
    server::Server,
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How far a request has come when `begin` returns.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The reply was appended.
    Done(#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has statuses"))] Status),
    /// The function is still running.
    Running(Running),
    /// The client listens from now on; it is answered when that ends.
    Listening(Listening),
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

/// Polls with every panic turned into a private failure, and drops without any; ends when the function waits for
/// answers that only another request can bring, and pauses where it goes on as a task.
pub(super) struct Contained<R> {
    future: Option<BoxFuture<Result<R, Failure>>>,
    context: Option<Context>,
}

impl<R> Contained<R> {
    pub(super) fn new(future: BoxFuture<Result<R, Failure>>, context: Option<Context>) -> Self {
        Self { future: Some(future), context }
    }
}

impl<R> Future for Contained<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Self { future: Some(future), context } = &mut *self else { return Poll::Pending };
        let entered = context.as_ref().map(Context::enter);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panicked(panic))));
        drop(entered);
        if polled.is_pending()
            && let Some(context) = context
        {
            if context.inner().asks.ends_round() {
                return Poll::Ready(Err(Failure::Unanswered));
            }
            if context.starts_task() {
                return Poll::Ready(Err(Failure::Task));
            }
        }
        polled
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

impl<R> Drop for Contained<R> {
    fn drop(&mut self) {
        // what the function holds may panic when its call is given up
        let entered = self.context.as_ref().map(Context::enter);
        discard(self.future.take());
        drop(entered);
    }
}

/// Drops a value of the user's; a panic in that is the end of it, and not of the connection.
fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // it could panic once more
        std::mem::forget(panic);
    }
}

pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let error = ToolError::private(format!("panicked: {}", message_of(&*panic)));
    discard(panic);
    Failure::Body(error)
}

/// Enters a handler; what it panics with is a private failure. Also gives the context, if one was made.
///
/// A call that is watched has a context in any case, so that what a plain function records is known to belong to it.
pub(super) fn enter<R>(
    handler: Handler<R>,
    parts: CallParts<'_>,
    watched: bool,
) -> (Outcome<R>, Option<Context>) {
    let mut call = Call::new(parts);
    let entered = watched.then(|| call.context().enter());
    let outcome =
        catch_unwind(AssertUnwindSafe(|| handler(&mut call))).unwrap_or_else(|panic| Err(panicked(panic)));
    drop(entered);
    (outcome, call.into_context())
}

/// Enters a handler whose arguments are strings.
pub(super) fn enter_text<R>(
    handler: Handler<R>,
    args: &[&'static dyn AnyArg],
    values: &[(String, Variable)],
    this: Option<&Arc<dyn Any + Send + Sync>>,
    watched: bool,
    context: &dyn Fn() -> Context,
) -> (Outcome<R>, Option<Context>) {
    let input = Input::Text(values);
    let parts = CallParts { input, args, strict: false, tool: None, validator: None, this, context };
    enter(handler, parts, watched)
}

/// How a call goes on after its handler was entered.
pub(super) struct Drive<'a> {
    pub(super) server: &'a Server,
    pub(super) frame: Frame<'a>,
    /// Absent if the function did not ask for it.
    pub(super) context: Option<Context>,
    /// Makes one for a function that fails with what only a context can tell its client.
    pub(super) make: Option<&'a dyn Fn() -> Context>,
    pub(super) limit: Option<(Duration, String)>,
    pub(super) subject: Subject<'a>,
}

impl<'a> Drive<'a> {
    /// For methods whose functions cannot ask, and have no limit of their own.
    pub(super) fn without_rounds(server: &'a Server, frame: Frame<'a>) -> Self {
        Self { server, frame, context: None, make: None, limit: None, subject: Subject::NONE }
    }
}

/// Brings an outcome to its reply: `finish` writes it, now or when the future is done.
pub(super) fn drive<R: Send + 'static>(
    outcome: Outcome<R>,
    drive: Drive<'_>,
    out: &mut Vec<u8>,
    finish: impl FnOnce(&Server, Result<R, Failure>, &str, &mut Vec<u8>) -> Status + Send + 'static,
) -> Begun {
    let Drive { server, frame, mut context, make, limit, subject } = drive;
    // most functions are ready at once; they need no task, no timer and no copy of the id
    let ready = match outcome {
        Ok(Flow::Ready(result)) => Ok(Ok(result)),
        Err(failure) => Ok(Err(failure)),
        Ok(Flow::Pending(future)) => {
            let mut future = Contained::new(future, context.clone());
            match Pin::new(&mut future).poll(&mut TaskContext::from_waker(Waker::noop())) {
                // the next poll says so once more
                Poll::Ready(Err(Failure::Task)) | Poll::Pending => Err(future),
                Poll::Ready(result) => Ok(result),
            }
        }
    };
    let known = match &ready {
        Ok(Ok(_)) => true,
        Ok(Err(failure)) => !requires_visits(failure),
        // what it fails with is not known yet
        Err(_) => frame.revision < Revision::V2025_11_25,
    };
    if !known && context.is_none() {
        context = make.map(|make| make());
    }
    let end = End { server, frame, context: context.as_ref(), subject: &subject };
    let future = match ready {
        Err(future) => future,
        Ok(result) => return Begun::Done(end.settle(finish, result, out)),
    };
    // only a call that may ask needs to be known again
    let rounds = context.is_some() && frame.revision.is_modern();
    let subject = if rounds { subject.into_owned() } else { Subject::NONE };
    let cancel = context.as_ref().map(|context| context.inner().cancel.clone()).unwrap_or_default();
    let (server, id, revision) = (server.clone(), frame.id.into(), frame.revision);
    let going = Going { server, id, revision, context, subject, limit, future, finish };
    Begun::Running(Running::new(frame.id, going.end(), cancel))
}

/// A call that goes on in a future of its own.
pub(super) struct Going<R, F> {
    pub(super) server: Server,
    /// Raw JSON.
    pub(super) id: Box<str>,
    pub(super) revision: Revision,
    pub(super) context: Option<Context>,
    pub(super) subject: Subject<'static>,
    pub(super) limit: Option<(Duration, String)>,
    pub(super) future: Contained<R>,
    pub(super) finish: F,
}

impl<R, F> Going<R, F>
where
    R: Send + 'static,
    F: FnOnce(&Server, Result<R, Failure>, &str, &mut Vec<u8>) -> Status + Send + 'static,
{
    /// Runs it to its reply, which comes early if it goes on as a task.
    pub(super) async fn end(mut self) -> Finished {
        let cancel = self.context.as_ref().map(|context| context.inner().cancel.clone()).unwrap_or_default();
        let result = limited(&mut self.future, self.limit.as_ref(), &cancel).await;
        if matches!(result, Err(Failure::Task)) {
            return self.become_task().await;
        }
        self.settle(result)
    }

    fn settle(self, result: Result<R, Failure>) -> Finished {
        let mut bytes = Vec::with_capacity(256);
        let frame = Frame { id: &self.id, revision: self.revision };
        let end = End { server: &self.server, frame, context: self.context.as_ref(), subject: &self.subject };
        let status = end.settle(self.finish, result, &mut bytes);
        Finished { bytes, status }
    }
}

/// The end of a call.
pub(super) struct End<'a> {
    pub(super) server: &'a Server,
    pub(super) frame: Frame<'a>,
    pub(super) context: Option<&'a Context>,
    pub(super) subject: &'a Subject<'a>,
}

impl End<'_> {
    /// Writes the reply; a panic in it (an error's own `Display`, say) costs this reply and nothing else.
    pub(super) fn settle<R>(
        &self,
        finish: impl FnOnce(&Server, Result<R, Failure>, &str, &mut Vec<u8>) -> Status,
        result: Result<R, Failure>,
        out: &mut Vec<u8>,
    ) -> Status {
        if let Some(context) = self.context {
            context.inner().cancel.end();
        }
        let (id, start) = (self.frame.id, out.len());
        let written = catch_unwind(AssertUnwindSafe(|| match (self.told(result), self.context) {
            (Err(Failure::Unanswered), Some(context)) => {
                self.server.end_round(context, self.subject, self.frame, out)
            }
            (result, _) => finish(self.server, result, id, out),
        }));
        written.unwrap_or_else(|panic| {
            out.truncate(start);
            let status = lost(id, &*panic, out);
            discard(panic);
            status
        })
    }
}

impl End<'_> {
    /// The same, but for a failure that clients hear of in different ways.
    fn told<R>(&self, result: Result<R, Failure>) -> Result<R, Failure> {
        result.map_err(|failure| {
            let Some(error) = failure.protocol() else { return failure };
            match error.code {
                URL_ELICITATION_REQUIRED => required(error.clone(), self.context),
                // the one code that has a successor; the function need not know who asks
                RESOURCE_NOT_FOUND if self.frame.revision.is_modern() => {
                    Failure::Protocol(ProtocolError { code: INVALID_PARAMS, ..error.clone() })
                }
                _ => failure,
            }
        })
    }
}

fn requires_visits(failure: &Failure) -> bool {
    failure.protocol().is_some_and(|error| error.code == URL_ELICITATION_REQUIRED)
}

/// Answers a call whose reply was lost to a panic.
fn lost(id: &str, panic: &(dyn Any + Send), out: &mut Vec<u8>) -> Status {
    tracing::error!(error = message_of(panic), "panicked while a reply was written");
    error_reply(out, Some(id), &ProtocolError::internal("the reply could not be written"));
    Status::Ok
}

/// Waits for a future, at most as long as its limit; time that the client takes for answers does not count. A thread
/// that outlives the limit sees its token fire.
pub(super) async fn limited<R>(
    future: &mut Contained<R>,
    limit: Option<&(Duration, String)>,
    cancel: &Cancel,
) -> Result<R, Failure> {
    let Some((limit, what)) = limit else { return future.await };
    let mut timer = std::pin::pin!(sleep(*limit));
    let mut waiting_since = None;
    let in_time = std::future::poll_fn(|cx| {
        if let Poll::Ready(result) = Pin::new(&mut *future).poll(cx) {
            return Poll::Ready(Some(result));
        }
        let waits = future.context.as_ref().is_some_and(|context| context.inner().asks.is_waiting());
        if waits {
            waiting_since.get_or_insert_with(Instant::now);
            return Poll::Pending;
        }
        if let Some(since) = waiting_since.take() {
            let later = timer.deadline() + since.elapsed();
            timer.as_mut().reset(later);
        }
        timer.as_mut().poll(cx).map(|()| None)
    });
    in_time.await.unwrap_or_else(|| {
        cancel.fire();
        Err(Failure::Body(ToolError::new(format!("{what} took longer than its limit of {limit:?}"))))
    })
}

/// The future of an outcome, for calls that had to wait before they were entered.
pub(super) fn future_of<R: Send + 'static>(outcome: Outcome<R>) -> BoxFuture<Result<R, Failure>> {
    match outcome {
        Ok(Flow::Pending(future)) => future,
        Ok(Flow::Ready(result)) => Box::pin(std::future::ready(Ok(result))),
        Err(failure) => Box::pin(std::future::ready(Err(failure))),
    }
}
