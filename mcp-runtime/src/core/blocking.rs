//! Functions that block, on the runtime's blocking pool. A thread cannot be stopped, so it holds the permits of its
//! call until it returns, even if the call was cancelled. A function that still waits for a thread is aborted.

use std::{
    cell::RefCell,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
};

use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

use crate::core::{admission, context::Context, error::Failure, sync::Mutex};

/// A permit that a call holds while it runs.
#[derive(Debug)]
pub(crate) enum CallPermit {
    /// A permit of a tool's `max_concurrency`.
    Concurrency(#[allow(dead_code, reason = "held for its drop")] OwnedSemaphorePermit),
    /// A permit of the calls that one caller may run at once.
    Caller(#[allow(dead_code, reason = "held for its drop")] admission::Permit),
    /// A permit of a budget.
    Budget(#[allow(dead_code, reason = "held for its drop")] admission::Permit),
    /// The continuation of a call that has left its request, such as a task.
    Outside(#[allow(dead_code, reason = "held for its drop")] Arc<dyn fmt::Debug + Send + Sync>),
}

thread_local! {
    /// The threads that the call being polled on this thread has started; `None` while it polls no call.
    static STARTED_THREADS: RefCell<Option<Vec<Arc<Thread>>>> = const { RefCell::new(None) };
}

/// A thread that runs a call's function.
#[derive(Debug, Default)]
struct Thread(Mutex<ThreadState>);

#[derive(Debug, Default)]
struct ThreadState {
    returned: bool,
    permits: Vec<CallPermit>,
}

impl Thread {
    /// Holds permits until the function has returned.
    fn hold_permits(&self, permits: Vec<CallPermit>) {
        let mut state = self.0.lock();
        if !state.returned {
            state.permits.extend(permits);
        }
    }
}

/// Releases a thread's permits when its function returns, or is aborted before it starts.
struct ReleaseOnReturn(Arc<Thread>);

impl Drop for ReleaseOnReturn {
    fn drop(&mut self) {
        let permits = {
            let mut state = self.0.0.lock();
            state.returned = true;
            std::mem::take(&mut state.permits)
        };
        drop(permits);
    }
}

/// A function on the blocking pool. If it still waits for a thread when this is dropped, it never starts.
struct BlockingTask<R> {
    handle: JoinHandle<R>,
}

impl<R> Drop for BlockingTask<R> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// Runs a function on the blocking pool, in the context of the current call.
pub(crate) async fn run_blocking<R: Send + 'static>(
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    let context = Context::current();
    let thread = Arc::new(Thread::default());
    let release = ReleaseOnReturn(thread.clone());
    let handle = tokio::task::spawn_blocking(move || {
        let _release = release;
        let _entered = context.as_ref().map(Context::enter_blocking);
        body()
    });
    STARTED_THREADS
        .with_borrow_mut(|started| started.iter_mut().for_each(|started| started.push(thread.clone())));
    let mut task = BlockingTask { handle };
    match (&mut task.handle).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            // caught by `invoke`, like every panic
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Failure::private(error)),
        },
    }
}

/// A future and the permits that it holds; if it is dropped while a thread works for it, the thread holds them.
#[derive(Debug)]
pub(crate) struct WithPermits<F> {
    // dropped first, so that a function that still waits for a thread is aborted before the permits are released
    future: F,
    held: HeldPermits,
}

/// The threads that work for a call.
#[derive(Debug, Default)]
pub struct CallThreads(Vec<Arc<Thread>>);

impl CallThreads {
    /// Collects the threads that a call starts while it is polled on this thread.
    pub(crate) fn begin() -> StartingThreads {
        StartingThreads { outer: Some(STARTED_THREADS.replace(Some(Vec::new()))) }
    }
}

/// The poll of a call on this thread. It ends as well when the call panics.
pub(crate) struct StartingThreads {
    /// Those of the call that polls this one, if one does; unset once the poll has ended.
    outer: Option<Option<Vec<Arc<Thread>>>>,
}

impl StartingThreads {
    /// The threads that the call has started.
    pub(crate) fn end(mut self) -> CallThreads {
        let threads = self.restore();
        // nothing is left to restore
        std::mem::forget(self);
        threads
    }

    fn restore(&mut self) -> CallThreads {
        let Some(outer) = self.outer.take() else { return CallThreads::default() };
        let started = STARTED_THREADS.replace(outer).unwrap_or_default();
        if !started.is_empty() {
            // a call within a call: the threads hold the permits of both
            STARTED_THREADS.with_borrow_mut(|outer| {
                outer.iter_mut().for_each(|outer| outer.extend_from_slice(&started));
            });
        }
        CallThreads(started)
    }
}

impl Drop for StartingThreads {
    fn drop(&mut self) {
        self.restore();
    }
}

#[derive(Debug)]
struct HeldPermits {
    permits: Vec<CallPermit>,
    threads: Vec<Arc<Thread>>,
}

impl<F> WithPermits<F> {
    pub(crate) fn new(future: F, permits: Vec<CallPermit>) -> Self {
        Self { future, held: HeldPermits { permits, threads: Vec::new() } }
    }

    /// Wraps a future that these threads already work for.
    pub(crate) fn with_threads(future: F, threads: CallThreads) -> Self {
        Self { future, held: HeldPermits { permits: Vec::new(), threads: threads.0 } }
    }

    /// The threads that work for it.
    pub(crate) fn threads(&self) -> CallThreads {
        CallThreads(self.held.threads.clone())
    }

    pub(crate) fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Holds another permit.
    pub(crate) fn hold_permit(&mut self, permit: CallPermit) {
        self.held.permits.push(permit);
    }

    /// Replaces the permits that it holds, but for those of the function's own limits.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "elsewhere a call ends with its connection")
    )]
    pub(crate) fn replace_permits(&mut self, permit: CallPermit) {
        let is_own =
            |permit: &CallPermit| matches!(permit, CallPermit::Concurrency(_) | CallPermit::Caller(_));
        self.held.permits.retain(is_own);
        self.held.permits.push(permit);
    }
}

impl<F: Future + Unpin> Future for WithPermits<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let starting = CallThreads::begin();
        let polled = Pin::new(&mut this.future).poll(cx);
        this.held.threads.extend(starting.end().0);
        polled
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        // a call has one thread at a time: the last one that it started
        if let Some(thread) = self.threads.last() {
            thread.hold_permits(std::mem::take(&mut self.permits));
        }
    }
}
