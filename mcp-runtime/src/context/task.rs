//! Turns a running call into a task, so that its client gets a reply and does not wait for the function.

use std::{
    future::poll_fn,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use tokio::sync::Semaphore;

use super::{Context, Inner};

/// Whether a call may become a task, and wants to.
#[derive(Debug, Default)]
pub(crate) struct TaskStart {
    /// Set if it may: the concurrency limit that applies to its function.
    permits: OnceLock<Option<Arc<Semaphore>>>,
    is_requested: AtomicBool,
}

impl Context {
    /// Turns the call into a task: the client gets its reply now, and the function continues in the background. Returns
    /// whether the call is a task from here on.
    ///
    /// For tools with `task = manual`, which begin in the call itself: they may send client requests first and start
    /// once they know enough. Tools with `task` start automatically before their first line. It returns `false` without
    /// any effect if the client does not support tasks (all clients before 2026-07-28, and those that do not declare the
    /// extension), if the tool has no `task` option, or outside of the function that the client called; the function
    /// then continues within the call.
    ///
    /// From here on client requests are part of the task until the client responds, and progress is the task's status
    /// message.
    ///
    /// ```
    /// use mcp_runtime::prelude::*;
    ///
    /// /// Moves everything to another region.
    /// #[mcp_tool(task = manual)]
    /// async fn migrate(ctx: &Context) -> Result<String, ToolError> {
    ///     let region: String = ctx.elicit("region", "Where to?").await?;
    ///     ctx.start_task().await;
    ///     ctx.progress(1.0).message("copying").send();
    ///     Ok(format!("everything is in {region}"))
    /// }
    /// ```
    pub async fn start_task(&self) -> bool {
        poll_fn(|cx| {
            let Inner { client_requests, task_start, .. } = self.inner();
            if client_requests.task().is_some() {
                return Poll::Ready(true);
            }
            if task_start.permits.get().is_none() || !self.is_current() {
                return Poll::Ready(false);
            }
            // the poller of the function looks at this next, and polls again once there is a task
            task_start.is_requested.store(true, Ordering::Relaxed);
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Allows the call to become a task, whose function then acquires a permit of that semaphore first.
    pub(crate) fn may_start_task(&self, permits: Option<Arc<Semaphore>>) {
        // a context belongs to one call, which allows it once
        let _again = self.inner().task_start.permits.set(permits);
    }

    /// What the task acquires a permit of before its function begins.
    pub(crate) fn permit_to_wait_for(&self) -> Option<Arc<Semaphore>> {
        self.inner().task_start.permits.get().cloned().flatten()
    }

    /// Takes the wish of the pending function to become a task.
    pub(crate) fn starts_task(&self) -> bool {
        self.inner().task_start.is_requested.swap(false, Ordering::Relaxed)
    }
}
