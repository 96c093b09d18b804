//! The only place that runs users' functions: handlers of tools, resources and prompts, and the functions that their
//! attributes name. It catches panics, polls a future for the first time in place, applies time limits and notices when
//! a function cannot continue in its request; the outcome is a value.

use std::{
    any::Any,
    cell::{Cell, OnceCell},
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, Ordering},
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::core::{
    arguments::{BoxFuture, CallParts, MaybeFuture, call_handler},
    blocking::{CallPermit, CallPermits, Permits, Polling, WithPermits},
    client_request::require_visits,
    context::{Context, Suspension},
    error::Failure,
    item_function::Function,
    item_output::ItemOutput,
    jsonrpc::ProtocolError,
    log_limit::{LogLimit, LogLine, cut_for_log},
    maybe_ready::MaybeReady,
    reason::Reason,
};

/// A function that has been called: how it ended its request, or that it is running.
pub(crate) type Invocation = MaybeReady<Ended, Running>;

/// How a function ended its request.
pub(crate) enum Ended {
    Returned(Result<ItemOutput, Failure>),
    /// It cannot continue in its request, which the suspension answers.
    Suspended(Suspension, Running),
}

/// What a panic says.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

/// Drops a user's value and swallows a panic of its destructor.
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // dropping the payload could panic again
        std::mem::forget(panic);
    }
}

/// Runs a user's code; a panic becomes a private failure.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let error = Failure::because(Reason::Panic, format!("panicked: {}", panic_message(&*panic)));
        discard(panic);
        Err(error)
    })
}

/// Logs a panic outside of a user's function that left a request without a reply, and returns the error to send.
pub(crate) fn report_lost_reply(panic: Box<dyn Any + Send>) -> ProtocolError {
    static LIMIT: LogLimit = LogLimit::new();
    if let Some(LogLine { suppressed }) = LIMIT.line() {
        let error = cut_for_log(panic_message(&*panic));
        tracing::error!(suppressed, error = &*error, "panicked while a reply was written");
    }
    discard(panic);
    ProtocolError::internal("the reply could not be written")
}

/// After which time a plain function is reported as slow: it runs on the thread that serves its client.
const SLOW_FUNCTION: Duration = Duration::from_millis(500);

/// Calls the function of an item. With `is_current` the call is the current one of its thread also while a plain function runs,
/// so that the `tracing` events that it records, and the updates that it reports, are attributed to the call; it always has a
/// context then.
pub(crate) fn start(
    name: &str,
    function: &Function,
    parts: &CallParts<'_>,
    limit: Option<Duration>,
    is_current: bool,
) -> Invocation {
    let context = OnceCell::new();
    let mut make_context = || context.get_or_init(parts.context).clone();
    let entered = is_current.then(|| make_context().enter());
    // the process's clock, which tests cannot pause
    let started = is_timed(&function.was_timed).then(std::time::Instant::now);
    let outcome = catch_panic(|| call_handler(function.handler, parts, &context));
    if let Some(started) = started
        && matches!(outcome, Ok(MaybeFuture::Ready(_)) | Err(_))
    {
        let elapsed = started.elapsed();
        if elapsed > SLOW_FUNCTION && function.take_slow_warning() {
            warn_of_slow_function(name, elapsed);
        }
    }
    drop(entered);
    poll_in_place(outcome, context.get().cloned(), limit, &mut make_context)
}

/// Whether this call is to be timed: the first one of the function, then one call in 16 on each thread, since reading the
/// clock costs more than the rest of the call of a short function.
fn is_timed(was_timed: &AtomicBool) -> bool {
    thread_local! {
        static CALLS: Cell<u8> = const { Cell::new(0) };
    }
    let calls = CALLS.get();
    CALLS.set(calls.wrapping_add(1));
    calls.is_multiple_of(16)
        || (!was_timed.load(Ordering::Relaxed) && !was_timed.swap(true, Ordering::Relaxed))
}

#[cold]
fn warn_of_slow_function(name: &str, elapsed: Duration) {
    tracing::warn!(
        name,
        ?elapsed,
        "a plain function held up the thread that serves its client\nadd `blocking` to its attribute, or make it async"
    );
}

/// Calls a function that already has its context.
pub(crate) fn start_with(
    function: impl FnOnce() -> Result<MaybeFuture<ItemOutput>, Failure>,
    context: &Context,
    limit: Option<Duration>,
) -> Invocation {
    poll_in_place(catch_panic(function), Some(context.clone()), limit, &mut || context.clone())
}

/// Polls a pending function for the first time, unless its handler has; `make_context` is for a function that has not
/// made a context itself.
fn poll_in_place(
    outcome: Result<MaybeFuture<ItemOutput>, Failure>,
    context: Option<Context>,
    limit: Option<Duration>,
    make_context: &mut dyn FnMut() -> Context,
) -> Invocation {
    let (future, permits) = match outcome {
        // the fast path: no task, no timer, no context
        Ok(MaybeFuture::Ready(value)) => return resolve_ready(Ok(value), context, make_context),
        Ok(MaybeFuture::Polled(result)) => return resolve_ready(result, context, make_context),
        Err(failure) => return resolve_ready(Err(failure), context, make_context),
        Ok(MaybeFuture::Waiting(future, permits)) => (future, Some(permits)),
        Ok(MaybeFuture::Pending(future)) => (future, None),
    };
    let mut future = CatchPanic { future: Some(future), context };
    let [permits, of_request] = match permits {
        Some(permits) => permits,
        None => {
            let polling = Polling::begin(CallPermits::default());
            let polled = Pin::new(&mut future).poll(&mut TaskContext::from_waker(Waker::noop()));
            let permits = polling.end();
            if let Poll::Ready(result) = polled {
                return resolve_ready(result, future.context.take(), make_context);
            }
            permits
        }
    };
    let context = make_context();
    // the same one, which is entered around the whole future from now on
    future.context = None;
    let future = WithPermits { future, permits };
    let running = Running { future, of_request, context, limit };
    match running.context.take_suspension() {
        Some(suspension) => MaybeReady::Ready(Ended::Suspended(suspension, running)),
        None => MaybeReady::Pending(running),
    }
}

/// The invocation of a function that returned `result` at once, or from its first poll; `context` is the one that it has
/// made.
fn resolve_ready(
    result: Result<ItemOutput, Failure>,
    context: Option<Context>,
    make_context: &mut dyn FnMut() -> Context,
) -> Invocation {
    if !matches!(result, Err(Failure::VisitsRequired(_))) {
        // a task that the function has spawned may keep the context: after the result, nothing more is sent for the call
        if let Some(context) = context {
            context.inner().cancel.complete();
        }
        return MaybeReady::Ready(Ended::Returned(result));
    }
    MaybeReady::Ready(Running::without_function(make_context()).into_ended(result))
}

/// A user's future. A panic in its poll becomes a private failure; a panic in its drop is swallowed.
struct CatchPanic<R> {
    future: Option<BoxFuture<Result<R, Failure>>>,
    /// Entered while it is polled or dropped, unless its owner does that.
    context: Option<Context>,
}

impl<R> Future for CatchPanic<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Self { future: Some(future), context } = &mut *self else { return Poll::Pending };
        let entered = context.as_ref().map(Context::enter);
        let mut polled = Poll::Pending;
        let caught = catch_panic(|| {
            polled = future.as_mut().poll(cx);
            Ok(())
        });
        drop(entered);
        match caught {
            Ok(()) => polled,
            Err(failure) => Poll::Ready(Err(failure)),
        }
    }
}

impl<R> Drop for CatchPanic<R> {
    fn drop(&mut self) {
        // log entries of destructors belong to the call
        let entered = self.context.as_ref().map(Context::enter);
        discard(self.future.take());
        drop(entered);
    }
}

/// Runs a layer of a call: a panic in it becomes a private failure of the call.
pub(crate) fn contain<R: 'static>(
    future: BoxFuture<Result<R, Failure>>,
    context: &Context,
) -> impl Future<Output = Result<R, Failure>> + Send + use<R> {
    CatchPanic { future: Some(future), context: Some(context.clone()) }
}

/// A function that has been polled and is pending.
pub(crate) struct Running {
    future: WithPermits<CatchPanic<ItemOutput>>,
    /// The permits of the request that the function was called in: what threads of its first poll hold of them.
    of_request: Permits,
    context: Context,
    limit: Option<Duration>,
}

impl Running {
    /// What waits for the client's answers to a function that has returned: to poll it never ends.
    fn without_function(context: Context) -> Self {
        let future = CatchPanic { future: None, context: None };
        let future = WithPermits { future, permits: Permits::default() };
        Self { future, of_request: Permits::default(), context, limit: None }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The permits of the function's request, for its reply.
    pub(crate) fn take_permits_of_request(&mut self) -> Permits {
        std::mem::take(&mut self.of_request)
    }

    /// Holds permits as long as the function runs, on a thread or not.
    pub(crate) fn hold(&mut self, permits: Vec<CallPermit>) {
        self.future.permits.hold(permits);
    }

    /// Runs the function to its end, at most for its time limit, which does not include the time that the client takes
    /// to answer. If a thread outlives the limit, its cancellation token fires.
    ///
    /// The limit is the item's `timeout`, or else that of the server's limits, none by default
    /// (`apply_with_concurrency` in `core/server/assemble.rs`). A tool with `task` has its own only, also when its client
    /// waits for the result (`add_tool` there). A plain function has none, since it cannot be interrupted. Each run that a
    /// layer starts has the limit; the layers have none. The wait at the item's gates before the function starts has the
    /// same limit once more: [`with_timeout`]. A call that goes on as a task has the limit anew (`SuspendedCall::finish` calls
    /// this again), and each retry with the client's answers is a run of its own.
    pub(crate) async fn finish(mut self) -> Ended {
        let mut timer = pin!(self.limit.map(sleep));
        let mut waiting_since = None;
        let ended = poll_fn(|cx| {
            if let Poll::Ready(result) = self.poll_function(cx) {
                return Poll::Ready(Ok(result));
            }
            if let Some(suspension) = self.context.take_suspension() {
                return Poll::Ready(Err(suspension));
            }
            let Some(mut timer) = timer.as_mut().as_pin_mut() else { return Poll::Pending };
            if self.context.client_requests().is_waiting() {
                waiting_since.get_or_insert_with(Instant::now);
                return Poll::Pending;
            }
            if let Some(since) = waiting_since.take() {
                let later = timer.deadline() + since.elapsed();
                timer.as_mut().reset(later);
            }
            timer.poll(cx).map(|()| {
                self.context.inner().cancel.cancel();
                Ok(Err(Failure::TimedOut(self.limit.unwrap_or_default())))
            })
        });
        match ended.await {
            Ok(result) => self.into_ended(result),
            Err(suspension) => Ended::Suspended(suspension, self),
        }
    }

    fn poll_function(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<ItemOutput, Failure>> {
        let _entered = self.context.enter();
        Pin::new(&mut self.future).poll(cx)
    }

    /// The end of a function that returned `result`. URLs that the user must visit first reach the client in the way
    /// that its revision defines, which may suspend the call.
    fn into_ended(self, result: Result<ItemOutput, Failure>) -> Ended {
        let result = match result {
            Err(Failure::VisitsRequired(error)) => {
                let failure = require_visits(error, &self.context);
                match self.context.take_suspension() {
                    Some(suspension) => return Ended::Suspended(suspension, self),
                    None => Err(failure),
                }
            }
            other => other,
        };
        // after its result, nothing more is sent for the call
        self.context.inner().cancel.complete();
        Ended::Returned(result)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // log entries of destructors belong to the call
        let _entered = self.context.enter();
        discard(self.future.future.future.take());
    }
}

impl Invocation {
    /// Runs the function to its end, in the way of [`Running::finish`].
    pub(crate) async fn finish(self) -> Ended {
        match self {
            Self::Ready(ended) => ended,
            Self::Pending(running) => running.finish().await,
        }
    }
}

/// Waits for something that belongs to a call, at most for the call's time limit: for the item's gates, before its function.
///
/// # Errors
/// The limit has passed.
pub(crate) async fn with_timeout<T>(
    limit: Option<Duration>,
    wait: impl Future<Output = T>,
) -> Result<T, Failure> {
    match limit {
        None => Ok(wait.await),
        Some(limit) => tokio::time::timeout(limit, wait).await.map_err(|_| Failure::TimedOut(limit)),
    }
}
