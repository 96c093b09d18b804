//! Tasks of one type.
//!
//! tokio generates about 190 functions for each type of future that is spawned. Boxed, all tasks of the server share one
//! type, which saves a tenth of the code that is compiled. A task allocates anyway, and what is spawned is never the
//! common case: a call that completes when it is first polled has no task.

use std::pin::Pin;

use tokio::{runtime::Handle, task::JoinHandle};

/// Spawns a task on `runtime`.
pub(crate) fn spawn_on(runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
    runtime.spawn(task)
}

/// Spawns a task on the current runtime.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_on(&Handle::current(), task)
}
