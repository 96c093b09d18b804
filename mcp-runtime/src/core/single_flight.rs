//! Work that many wait for and one does: at most one run at a time, in a task, so that a waiter that goes away does not end it.

use tokio::sync::watch;

use super::{spawn::spawn, sync::Mutex};

/// Runs of the same work, of which at most one is in progress.
pub(crate) struct SingleFlight<T>(Mutex<Option<watch::Receiver<Option<T>>>>);

/// A run in progress, or one that has ended.
pub(crate) struct Flight<T>(watch::Receiver<Option<T>>);

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// The run in progress; `work` begins one if there is none.
    pub(crate) fn join<F: Future<Output = T> + Send + 'static>(&self, work: impl FnOnce() -> F) -> Flight<T> {
        let mut current = self.0.lock();
        // the sender of a run that has ended, has panicked or was dropped with its runtime is gone
        if let Some(running) = current.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Flight(running.clone());
        }
        let (sender, running) = watch::channel(None);
        *current = Some(running.clone());
        let work = work();
        let _task = spawn(async move {
            sender.send_replace(Some(work.await));
        });
        Flight(running)
    }
}

impl<T: Clone> Flight<T> {
    /// The result of the run; `None` if it has panicked, or was dropped with its runtime.
    pub(crate) async fn outcome(mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn concurrent_callers_wait_for_the_run_in_progress_and_later_ones_begin_another() {
        let (flights, runs, go) =
            (SingleFlight::default(), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let work = || {
            let (runs, go) = (runs.clone(), go.clone());
            async move {
                let run = runs.fetch_add(1, Ordering::SeqCst);
                go.notified().await;
                run
            }
        };
        let first = flights.join(work);
        drop(flights.join(work));
        let second = flights.join(work);
        go.notify_one();
        assert_eq!((first.outcome().await, second.outcome().await), (Some(0), Some(0)));
        go.notify_one();
        assert_eq!(flights.join(work).outcome().await, Some(1));
    }

    #[tokio::test]
    async fn a_run_that_panics_has_no_outcome_and_does_not_stop_later_ones() {
        let flights = SingleFlight::default();
        assert_eq!(flights.join(|| async { panic!("as it may") }).outcome().await, None::<u8>);
        assert_eq!(flights.join(|| async { 7 }).outcome().await, Some(7));
    }
}
