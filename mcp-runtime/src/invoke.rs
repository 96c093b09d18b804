//! The only place that runs users' functions: handlers of tools, resources and prompts, and the functions that their
//! attributes name. Panics are contained, the first poll is in place, time limits and interruptions are seen here; what
//! comes out is a value.

use std::{
    any::Any,
    convert::Infallible,
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    arguments::{BoxFuture, Call, CallParts, Flow, Outcome},
    blocking::{Holding, Permit, Threads},
    client_request::{InputRequired, require_visits},
    content::Content,
    context::{ClientFeature, Context},
    error::{ErrorKind, Failure, ToolError},
    item::Handler,
    jsonrpc::ProtocolError,
    protocol::{INVALID_PARAMS, RESOURCE_NOT_FOUND, Revision, URL_ELICITATION_REQUIRED},
};

/// How a function that has been entered goes on.
pub(crate) enum Started<R, I> {
    Done(Invoked<R, I>),
    Running(Running<R>),
}

/// What came of a function.
pub(crate) enum Invoked<R, I> {
    Returned(Result<R, Failure>),
    /// It cannot go on in this request, for this reason.
    Interrupted(I, Running<R>),
}

/// Why a pending function may have to leave the request that called it. Each kind of body has its own reasons.
pub(crate) trait Interruption: Sized + Send + 'static {
    /// The reason that its last poll gave.
    fn raised(context: &Context) -> Option<Self>;
}

/// Completions, lists and checks of subscriptions wait in place.
impl Interruption for Infallible {
    fn raised(_: &Context) -> Option<Self> {
        None
    }
}

impl Interruption for InputRequired {
    fn raised(context: &Context) -> Option<Self> {
        context.inner().client_requests.take_input_required()
    }
}

/// Why a tool's function leaves its request.
pub(crate) enum ToolInterruption {
    Input(InputRequired),
    /// It goes on as a task.
    Task,
}

impl Interruption for ToolInterruption {
    fn raised(context: &Context) -> Option<Self> {
        InputRequired::raised(context)
            .map(Self::Input)
            .or_else(|| context.starts_task().then_some(Self::Task))
    }
}

/// A task needs a feature that its client does not declare.
pub(crate) struct MissingFeatures(pub(crate) Vec<ClientFeature>);

impl Interruption for MissingFeatures {
    fn raised(context: &Context) -> Option<Self> {
        context.inner().client_requests.take_missing().map(Self)
    }
}

/// What a function's own words are about, in messages and logs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// Such as `tool`.
    pub(crate) kind: &'static str,
    pub(crate) name: &'a str,
    /// Whether clients are shown the causes of private errors.
    pub(crate) detailed: bool,
}

/// What a client learns of a function that failed.
pub(crate) enum ClientError {
    /// The arguments do not fit; the text says how.
    Arguments(String),
    /// The item does not exist.
    NotFound,
    /// An error for the client's program.
    Protocol(ProtocolError),
    /// A message for the model.
    Message(String, Vec<Content>),
}

impl Failure {
    /// What the client learns of it: the function's own words if they are public, else only that it failed; the log
    /// gets the whole chain of causes.
    pub(crate) fn into_client_error(self, of: Subject<'_>, revision: Revision) -> ClientError {
        let Subject { kind, name, detailed } = of;
        match self {
            Self::Arguments(report) => ClientError::Arguments(report),
            Self::NotFound => ClientError::NotFound,
            Self::TimedOut(limit) => {
                let text = format!("{kind} '{name}' took longer than its limit of {limit:?}");
                ClientError::Message(text, Vec::new())
            }
            Self::Protocol(error) | Self::Body(ToolError(ErrorKind::Protocol(error))) => {
                ClientError::Protocol(in_words_of(revision, error))
            }
            Self::Body(ToolError(ErrorKind::Public { message, content })) => {
                ClientError::Message(message.into_owned(), content)
            }
            Self::Body(ToolError(ErrorKind::Private(cause))) => {
                // the cause writes itself, and may panic in that
                let chain = catch_unwind(AssertUnwindSafe(|| chain(&*cause)));
                discard(cause);
                let Ok(chain) = chain.map_err(|panic| {
                    tracing::error!(
                        kind,
                        name,
                        error = message_of(&*panic),
                        "panicked while an error was written"
                    );
                    discard(panic);
                }) else {
                    return ClientError::Protocol(ProtocolError::internal("the reply could not be written"));
                };
                tracing::error!(kind, name, error = %chain, "call failed");
                let text = format!("{kind} '{name}' failed");
                ClientError::Message(if detailed { format!("{text}: {chain}") } else { text }, Vec::new())
            }
        }
    }
}

/// One code has a successor in 2026-07-28, and functions need not know which client they answer.
fn in_words_of(revision: Revision, error: ProtocolError) -> ProtocolError {
    if error.code == RESOURCE_NOT_FOUND && revision.is_modern() {
        ProtocolError { code: INVALID_PARAMS, ..error }
    } else {
        error
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

/// Drops a value of the user's; a panic in that ends there.
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // it could panic once more
        std::mem::forget(panic);
    }
}

/// Runs a user's code; a panic in it is a private failure.
pub(crate) fn contain<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let error = ToolError::private(format!("panicked: {}", message_of(&*panic)));
        discard(panic);
        Err(Failure::Body(error))
    })
}

/// The log line and the error of a reply that was lost to a panic outside of a function's own code.
pub(crate) fn lost(panic: Box<dyn Any + Send>) -> ProtocolError {
    tracing::error!(error = message_of(&*panic), "panicked while a reply was written");
    discard(panic);
    ProtocolError::internal("the reply could not be written")
}

/// Enters a handler.
///
/// `watched`: the call has a context in any case, so that what a plain function records is known to belong to it.
pub(crate) fn start<R, I: Interruption>(
    handler: Handler<R>,
    parts: CallParts<'_>,
    limit: Option<Duration>,
    watched: bool,
) -> Started<R, I> {
    let mut call = Call::new(parts);
    let entered = watched.then(|| call.context().enter());
    let outcome = contain(|| handler(&mut call));
    drop(entered);
    go_on(outcome, call.made_context(), limit, &mut || call.context())
}

/// Enters a function that has its context already.
pub(crate) fn start_with<R, I: Interruption>(
    function: impl FnOnce() -> Outcome<R>,
    context: &Context,
    limit: Option<Duration>,
) -> Started<R, I> {
    go_on(contain(function), Some(context.clone()), limit, &mut || context.clone())
}

/// Polls what is pending in place; `context` makes a context for a function that has not asked for one.
fn go_on<R, I: Interruption>(
    outcome: Outcome<R>,
    made: Option<Context>,
    limit: Option<Duration>,
    context: &mut dyn FnMut() -> Context,
) -> Started<R, I> {
    match outcome {
        // most functions are ready at once: no task, no timer, no context
        Ok(Flow::Ready(value)) => Started::Done(Invoked::Returned(Ok(value))),
        Err(failure) => settle(Err(failure), context),
        Ok(Flow::Pending(future)) => {
            let mut future = Holding::new(Contained { future: Some(future), context: made }, Vec::new());
            match Pin::new(&mut future).poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Ready(result) => settle(result, context),
                Poll::Pending => {
                    let context = context();
                    future.get_mut().context = Some(context.clone());
                    let running = Running { future, context, limit };
                    match I::raised(&running.context) {
                        Some(interruption) => Started::Done(Invoked::Interrupted(interruption, running)),
                        None => Started::Running(running),
                    }
                }
            }
        }
    }
}

/// A result that was there at once.
fn settle<R, I: Interruption>(
    result: Result<R, Failure>,
    context: &mut dyn FnMut() -> Context,
) -> Started<R, I> {
    if !result.as_ref().is_err_and(requires_visits) {
        return Started::Done(Invoked::Returned(result));
    }
    let future = Holding::new(Contained { future: None, context: None }, Vec::new());
    let running = Running { future, context: context(), limit: None };
    Started::Done(running.visited(result))
}

fn requires_visits(failure: &Failure) -> bool {
    failure.protocol().is_some_and(|error| error.code == URL_ELICITATION_REQUIRED)
}

/// A user's future: polls with every panic turned into a private failure, and drops without any.
struct Contained<R> {
    future: Option<BoxFuture<Result<R, Failure>>>,
    context: Option<Context>,
}

impl<R> Future for Contained<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Self { future: Some(future), context } = &mut *self else { return Poll::Pending };
        let entered = context.as_ref().map(Context::enter);
        let mut polled = Poll::Pending;
        let contained = contain(|| {
            polled = future.as_mut().poll(cx);
            Ok(())
        });
        drop(entered);
        match contained {
            Ok(()) => polled,
            Err(failure) => Poll::Ready(Err(failure)),
        }
    }
}

impl<R> Drop for Contained<R> {
    fn drop(&mut self) {
        // what the function holds may panic when its call is given up
        let entered = self.context.as_ref().map(Context::enter);
        discard(self.future.take());
        drop(entered);
    }
}

/// A function that has been polled and is pending.
pub(crate) struct Running<R> {
    future: Holding<Contained<R>>,
    context: Context,
    limit: Option<Duration>,
}

impl<R> Running<R> {
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The threads that run the function.
    pub(crate) fn threads(&self) -> Threads {
        self.future.threads()
    }

    /// Holds permits as long as the function runs, on a thread or not.
    pub(crate) fn hold_all(&mut self, permits: impl IntoIterator<Item = Permit>) {
        permits.into_iter().for_each(|permit| self.future.hold(permit));
    }

    /// Runs the function to its end, at most as long as its limit; time that the client takes for answers does not
    /// count. A thread that outlives the limit sees its token fire.
    pub(crate) async fn finish<I: Interruption>(mut self) -> Invoked<R, I> {
        let mut timer = pin!(self.limit.map(sleep));
        let mut waiting_since = None;
        let ended = poll_fn(|cx| {
            if let Poll::Ready(result) = Pin::new(&mut self.future).poll(cx) {
                return Poll::Ready(Ok(result));
            }
            if let Some(interruption) = I::raised(&self.context) {
                return Poll::Ready(Err(interruption));
            }
            let Some(mut timer) = timer.as_mut().as_pin_mut() else { return Poll::Pending };
            if self.context.inner().client_requests.is_waiting() {
                waiting_since.get_or_insert_with(Instant::now);
                return Poll::Pending;
            }
            if let Some(since) = waiting_since.take() {
                let later = timer.deadline() + since.elapsed();
                timer.as_mut().reset(later);
            }
            timer.poll(cx).map(|()| {
                self.context.inner().cancel.fire();
                Ok(Err(Failure::TimedOut(self.limit.unwrap_or_default())))
            })
        });
        match ended.await {
            Ok(result) => self.visited(result),
            Err(interruption) => Invoked::Interrupted(interruption, self),
        }
    }

    /// The end, but for a failure with URLs that the user must visit first: clients are told of those in their own ways.
    fn visited<I: Interruption>(self, result: Result<R, Failure>) -> Invoked<R, I> {
        let result = match result {
            Err(failure) if requires_visits(&failure) => {
                let failure = match failure.protocol() {
                    Some(error) => require_visits(error.clone(), &self.context),
                    None => failure,
                };
                match I::raised(&self.context) {
                    Some(interruption) => return Invoked::Interrupted(interruption, self),
                    None => Err(failure),
                }
            }
            other => other,
        };
        // nothing more is sent for the call from here on
        self.context.inner().cancel.end();
        Invoked::Returned(result)
    }
}

impl<R> fmt::Debug for Running<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("context", &self.context).finish_non_exhaustive()
    }
}

/// Waits for something that belongs to a call, at most as long as the call's limit.
///
/// # Errors
/// The limit has passed.
pub(crate) async fn within<T>(limit: Option<Duration>, wait: impl Future<Output = T>) -> Result<T, Failure> {
    match limit {
        None => Ok(wait.await),
        Some(limit) => tokio::time::timeout(limit, wait).await.map_err(|_| Failure::TimedOut(limit)),
    }
}
