//! Where functions wait until a test lets them go on, and what the test sees of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

use super::{PATIENCE, until};

/// A gate; clones are the same one.
#[derive(Clone)]
pub struct Gate(Arc<Calls>);

struct Calls {
    permits: Semaphore,
    entered: AtomicUsize,
    finished: AtomicUsize,
    dropped: AtomicUsize,
    /// Calls for whose entry a test has waited.
    awaited: AtomicUsize,
}

impl Default for Gate {
    fn default() -> Self {
        let count = || AtomicUsize::new(0);
        let permits = Semaphore::new(0);
        let calls =
            Calls { permits, entered: count(), finished: count(), dropped: count(), awaited: count() };
        Self(Arc::new(calls))
    }
}

/// A function that has entered, and has neither finished nor been dropped.
pub struct Inside(Gate, bool);

impl Inside {
    /// Ends it as finished.
    pub fn finish(mut self) {
        self.1 = true;
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let calls = &self.0.0;
        (if self.1 { &calls.finished } else { &calls.dropped }).fetch_add(1, Ordering::SeqCst);
    }
}

impl Gate {
    /// Counts the function that calls it.
    pub fn enter(&self) -> Inside {
        self.0.entered.fetch_add(1, Ordering::SeqCst);
        Inside(self.clone(), false)
    }

    /// Waits until the gate is open for one more.
    pub async fn wait(&self) {
        self.0.permits.acquire().await.expect("nothing closes it").forget();
    }

    /// Enters, waits and finishes.
    pub async fn pass(&self) -> &'static str {
        let inside = self.enter();
        self.wait().await;
        inside.finish();
        "let go"
    }

    /// Enters, blocks its thread until the gate is open for one more, and finishes.
    ///
    /// # Panics
    ///
    /// If it is never opened.
    pub fn block(&self) {
        let (inside, start) = (self.enter(), Instant::now());
        loop {
            match self.0.permits.try_acquire() {
                Ok(permit) => break permit.forget(),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
            assert!(start.elapsed() < PATIENCE, "nothing opens the gate");
        }
        inside.finish();
    }

    /// Lets so many functions go on.
    pub fn open(&self, functions: usize) {
        self.0.permits.add_permits(functions);
    }

    /// Lets all functions go on from now on.
    pub fn open_for_all(&self) {
        self.0.permits.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// How many more functions may go on.
    pub fn left(&self) -> usize {
        self.0.permits.available_permits()
    }

    /// How many functions have entered.
    pub fn entered(&self) -> usize {
        self.0.entered.load(Ordering::SeqCst)
    }

    /// How many of them have finished.
    pub fn finished(&self) -> usize {
        self.0.finished.load(Ordering::SeqCst)
    }

    /// How many were dropped before they had finished.
    pub fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// How many have neither finished nor been dropped.
    pub fn running(&self) -> usize {
        self.entered() - self.finished() - self.dropped()
    }

    /// Waits until so many have entered.
    pub async fn until_entered(&self, functions: usize) {
        until(|| self.entered() == functions).await;
    }

    /// Waits until so many more have entered than at the last time.
    pub async fn more_entered(&self, functions: usize) {
        let all = self.0.awaited.fetch_add(functions, Ordering::SeqCst) + functions;
        until(|| self.entered() >= all).await;
    }

    /// Waits until so many are running.
    pub async fn until_running(&self, functions: usize) {
        until(|| self.running() == functions).await;
    }

    /// Waits until so many were dropped, and so many have finished.
    pub async fn until_ended(&self, dropped: usize, finished: usize) {
        until(|| self.dropped() >= dropped && self.finished() >= finished).await;
        assert_eq!((self.dropped(), self.finished()), (dropped, finished), "dropped and finished");
    }
}
