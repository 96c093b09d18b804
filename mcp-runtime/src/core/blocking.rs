//! Functions that block, on threads. A thread cannot be stopped, so it holds the permits of its call, and its turn, until it
//! returns, even if the call was cancelled. A function that still waits for a thread is aborted.
//!
//! Whatever blocks is listed here. Tokio's blocking pool is the program's as well: no one may fill it, and nothing that may
//! take as long as someone else likes is in it without a turn of the one for whom it runs.
//!
//! | what | its thread | a turn of |
//! |---|---|---|
//! | users' plain functions with `blocking`, of items and attributes | of the pool, [`run_blocking`] | the caller, who may have half of `MAX_THREADS` |
//! | a client's tokens: files, keyrings, the program's own stores; a token in a file | of the pool, [`run`] | the caller of the function that uses the client, else the program |
//! | a client's artifacts in a directory; large texts of its servers, which are parsed; the browser that it opens | the same | the same |
//! | look-ups of names, for webhooks, documents, clients and Redis | its own, `core/resolver.rs` | the principal that subscribed an endpoint, who may have half of `MAX_LOOK_UPS`, else the program |
//! | the addresses that a program serves, before it does | of the pool, by Tokio | none: no client is connected |
//!
//! Settings, keys, lists of API keys and skills are read where the program loads them, on its own thread, and pipes for five
//! seconds at most.

use std::{
    cell::RefCell,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context as TaskContext, Poll},
};

use tokio::{
    sync::OwnedSemaphorePermit,
    task::{JoinError, JoinHandle},
};

use crate::core::{
    admission::{self, Owner, Turns},
    context::Context,
    error::Failure,
    sync::Mutex,
};

/// Threads of the blocking pool that run something for this crate: by default, the pool has 512.
const MAX_THREADS: usize = 448;

static THREADS: LazyLock<Arc<Turns>> = LazyLock::new(|| Turns::new(MAX_THREADS, 100));

/// A permit that a call holds while it runs.
pub(crate) enum CallPermit {
    /// A permit of a tool's `max_concurrency`.
    Concurrency(#[allow(dead_code, reason = "held for its drop")] OwnedSemaphorePermit),
    /// A permit of what clients share, or of the calls that one caller may run at once.
    Share(#[allow(dead_code, reason = "held for its drop")] admission::Permit),
    /// The continuation of a call that has left its request, such as a task.
    Outside(#[allow(dead_code, reason = "held for its drop")] Arc<dyn Send + Sync>),
}

/// The permits of a run of a function, or of its request. Clones share them: the run or the request has one, and so has each
/// blocking thread that works for it, so that they are released when the last of these has ended.
#[derive(Clone, Default)]
pub struct Permits(Option<Arc<Mutex<Vec<CallPermit>>>>);

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permits")
    }
}

impl Permits {
    /// Holds further permits.
    pub(crate) fn hold(&mut self, permits: Vec<CallPermit>) {
        match &self.0 {
            Some(held) => held.lock().extend(permits),
            None if permits.is_empty() => {}
            None => self.0 = Some(Arc::new(Mutex::new(permits))),
        }
    }

    /// Holds a permit in place of all others.
    pub(crate) fn replace(&mut self, permit: CallPermit) {
        let replaced = std::mem::replace(&mut *self.0.get_or_insert_default().lock(), vec![permit]);
        drop(replaced);
    }

    /// The same permits, also those that are held later.
    fn share(&mut self) -> Self {
        self.0.get_or_insert_default();
        self.clone()
    }
}

/// Those of a run, and of the request that it was started in.
pub(crate) type CallPermits = [Permits; 2];

thread_local! {
    /// The permits of the calls that are being polled on this thread, the innermost last.
    static POLLED: RefCell<Vec<CallPermits>> = const { RefCell::new(Vec::new()) };
}

/// A poll of a call on this thread: the threads that the call starts in it hold its permits, also those that it gets later. It
/// ends as well when the call panics.
pub(crate) struct Polling(());

impl Polling {
    pub(crate) fn begin(permits: CallPermits) -> Self {
        POLLED.with_borrow_mut(|polled| polled.push(permits));
        Self(())
    }

    /// The permits, for the rest of the call.
    pub(crate) fn end(self) -> CallPermits {
        std::mem::forget(self);
        pop_polled()
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        drop(pop_polled());
    }
}

fn pop_polled() -> CallPermits {
    POLLED.with_borrow_mut(Vec::pop).unwrap_or_default()
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

/// A function that blocks, without its type: what runs it is generated for each type of result, and not for each function.
type Body<R> = Box<dyn FnOnce() -> R + Send>;

/// Runs a function on the blocking pool, when it is the turn of the current call's caller.
///
/// # Errors
/// It has panicked, or the runtime ends.
pub(crate) fn run<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> impl Future<Output = Result<R, JoinError>> + Send {
    run_boxed(Box::new(body))
}

async fn run_boxed<R: Send + 'static>(body: Body<R>) -> Result<R, JoinError> {
    let caller = Context::current().map_or_else(Owner::local, |context| context.inner().request.owner());
    let permits: Vec<_> =
        POLLED.with_borrow_mut(|polled| polled.iter_mut().flatten().map(Permits::share).collect());
    let turn = THREADS.wait(&caller, "").await;
    let handle = tokio::task::spawn_blocking(move || {
        let _held = (turn, permits);
        body()
    });
    let mut task = BlockingTask { handle };
    (&mut task.handle).await
}

/// Runs a user's function on the blocking pool, in the context of the current call.
///
/// # Errors
/// Returns the errors of `body`.
pub fn run_blocking<R: Send + 'static>(
    body: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> impl Future<Output = Result<R, Failure>> + Send {
    run_boxed_in_context(Box::new(body))
}

async fn run_boxed_in_context<R: Send + 'static>(body: Body<Result<R, Failure>>) -> Result<R, Failure> {
    let context = Context::current();
    let run = run(move || {
        let _entered = context.as_ref().map(Context::enter_blocking);
        body()
    });
    match run.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            // caught by `invoke`, like every panic
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Failure::private(error)),
        },
    }
}

/// A future, and the permits that it and the threads which work for it hold.
pub(crate) struct WithPermits<F> {
    // dropped first, so that a function that still waits for a thread is aborted before the permits are released
    pub(crate) future: F,
    pub(crate) permits: Permits,
}

impl<F: Future + Unpin> Future for WithPermits<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let Self { future, permits } = &mut *self;
        let polling = Polling::begin([std::mem::take(permits), Permits::default()]);
        let polled = Pin::new(future).poll(cx);
        [*permits, _] = polling.end();
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::mpsc,
        task::Waker,
    };

    use tokio::sync::oneshot;

    use super::*;

    /// A permit, and what is closed once it is released.
    fn permit() -> (Vec<CallPermit>, oneshot::Receiver<()>) {
        let (held, released) = oneshot::channel::<()>();
        (vec![CallPermit::Outside(Arc::new(held))], released)
    }

    #[tokio::test]
    async fn a_thread_holds_permits_that_its_call_gets_later_until_it_returns() {
        let (started, has_started) = oneshot::channel();
        let (finish, is_to_finish) = mpsc::channel::<()>();
        let mut function = Box::pin(run_blocking(move || {
            started.send(()).unwrap();
            is_to_finish.recv().unwrap();
            Ok(())
        }));
        let polling = Polling::begin(CallPermits::default());
        assert!(function.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending());
        let [mut of_run, mut of_request] = polling.end();
        has_started.await.unwrap();
        let (run, mut run_released) = permit();
        let (request, mut request_released) = permit();
        of_run.hold(run);
        of_request.hold(request);
        drop((function, of_run, of_request));
        assert!(run_released.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        assert!(request_released.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        finish.send(()).unwrap();
        assert!(run_released.await.is_err() && request_released.await.is_err());
    }

    #[test]
    fn a_poll_that_panics_has_ended() {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _polling = Polling::begin(CallPermits::default());
            panic!("a poll that panics");
        }));
        assert!(panicked.is_err());
        assert!(POLLED.with_borrow(Vec::is_empty));
    }
}
