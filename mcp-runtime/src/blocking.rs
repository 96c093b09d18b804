//! Functions that block, on the runtime's blocking pool. A thread cannot be stopped, so the permits of its call stay
//! with it until it returns, even if the call was given up long before; what still waits for a thread is aborted.

use std::{
    any::Any,
    cell::RefCell,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
};

use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    task::JoinHandle,
};

use crate::{
    admission,
    context::{Context, any_forwarder},
    error::Failure,
    sync::Mutex,
};

/// What a call holds while it runs.
#[derive(Debug)]
pub(crate) enum Permit {
    /// Of a tool's `max_concurrency`.
    Concurrency(#[allow(dead_code, reason = "held for its drop")] OwnedSemaphorePermit),
    /// Of a budget.
    Budget(#[allow(dead_code, reason = "held for its drop")] admission::Permit),
    /// A task, among those that run.
    Task(#[allow(dead_code, reason = "held for its drop")] Arc<dyn Any + Send + Sync>),
}

thread_local! {
    /// Threads that the call which this thread polls has started; absent while it polls none.
    static STARTED: RefCell<Option<Vec<Arc<Thread>>>> = const { RefCell::new(None) };
}

/// A thread that runs a call's function.
#[derive(Debug, Default)]
struct Thread(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    returned: bool,
    permits: Vec<Permit>,
}

impl Thread {
    /// Keeps permits until the function has returned.
    fn keep(&self, permits: Vec<Permit>) {
        let mut state = self.0.lock();
        if !state.returned {
            state.permits.extend(permits);
        }
    }
}

/// Marks a thread's function as returned, or as never started.
struct Returns(Arc<Thread>);

impl Drop for Returns {
    fn drop(&mut self) {
        let permits = {
            let mut state = self.0.0.lock();
            state.returned = true;
            std::mem::take(&mut state.permits)
        };
        drop(permits);
    }
}

/// Ends once the call that a thread works for was given up.
pub(crate) type GivenUp = oneshot::Receiver<()>;

/// A function on the blocking pool; one that still waits for a thread when this is dropped never starts.
struct OnThread<R> {
    handle: JoinHandle<R>,
    _call: oneshot::Sender<()>,
}

impl<R> Drop for OnThread<R> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// Runs what blocks on the blocking pool; it still counts as its call's there.
pub(crate) async fn run_blocking<R: Send + 'static>(
    body: impl FnOnce(GivenUp) -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    let context = any_forwarder().then(Context::current).flatten();
    let thread = Arc::new(Thread::default());
    let returns = Returns(thread.clone());
    let (call, given_up) = oneshot::channel();
    let handle = tokio::task::spawn_blocking(move || {
        let _returns = returns;
        let _entered = context.as_ref().map(Context::enter_beside);
        body(given_up)
    });
    STARTED.with_borrow_mut(|started| started.iter_mut().for_each(|started| started.push(thread.clone())));
    let mut running = OnThread { handle, _call: call };
    match (&mut running.handle).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            // contained where every panic is
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Failure::Body(error.into())),
        },
    }
}

/// A future and the permits that it holds; if it is dropped while a thread works for it, the thread keeps them.
#[derive(Debug)]
pub(crate) struct Holding<F> {
    // dropped first, so that what still waits for a thread is aborted before the permits go
    future: F,
    held: Held,
}

/// Threads that work for a call.
#[derive(Debug)]
pub(crate) struct Threads(Vec<Arc<Thread>>);

#[derive(Debug)]
struct Held {
    permits: Vec<Permit>,
    threads: Vec<Arc<Thread>>,
}

impl<F> Holding<F> {
    pub(crate) fn new(future: F, permits: Vec<Permit>) -> Self {
        Self { future, held: Held { permits, threads: Vec::new() } }
    }

    /// The same for a future that these threads work for already.
    pub(crate) fn with_threads(future: F, threads: Threads) -> Self {
        Self { future, held: Held { permits: Vec::new(), threads: threads.0 } }
    }

    /// The threads that work for it.
    pub(crate) fn threads(&self) -> Threads {
        Threads(self.held.threads.clone())
    }

    pub(crate) fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Holds another permit.
    pub(crate) fn hold(&mut self, permit: Permit) {
        self.held.permits.push(permit);
    }

    /// Replaces the permits that it holds.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "elsewhere a call ends with its connection")
    )]
    pub(crate) fn hold_instead(&mut self, permit: Permit) {
        self.held.permits.retain(|permit| matches!(permit, Permit::Concurrency(_)));
        self.held.permits.push(permit);
    }
}

impl<F: Future + Unpin> Future for Holding<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let outer = STARTED.replace(Some(Vec::new()));
        let polled = Pin::new(&mut this.future).poll(cx);
        let started = STARTED.replace(outer).unwrap_or_default();
        if !started.is_empty() {
            // a call within a call: both hold permits
            STARTED.with_borrow_mut(|outer| {
                outer.iter_mut().for_each(|outer| outer.extend_from_slice(&started));
            });
            this.held.threads.extend(started);
        }
        polled
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // a call has one thread at a time: the last one that it started
        if let Some(thread) = self.threads.last() {
            thread.keep(std::mem::take(&mut self.permits));
        }
    }
}
