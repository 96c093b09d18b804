//! Turns a running call into a task, so that its client gets a reply and does not wait for the function.

use std::{
    future::poll_fn,
    sync::{Arc, OnceLock},
    task::Poll,
};

use tokio::sync::Semaphore;

use super::{Context, ContextInner};
use crate::dispatch::ContinueAsTask;

/// Whether a call may become a task.
#[derive(Debug, Default)]
pub(crate) struct TaskStart {
    /// Set if it may: the semaphore that limits concurrent runs of its function.
    semaphore: OnceLock<Option<Arc<Semaphore>>>,
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
            let ContextInner { client_requests, task_start, .. } = self.call();
            if client_requests.task().is_some() {
                return Poll::Ready(true);
            }
            if task_start.semaphore.get().is_none() || !self.is_current() {
                return Poll::Ready(false);
            }
            // the task polls again, once it exists
            self.suspend(ContinueAsTask);
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Allows the call to become a task; its function then waits for a permit of that semaphore before it starts.
    pub(crate) fn allow_task_start(&self, semaphore: Option<Arc<Semaphore>>) {
        // set once: a context belongs to one call
        let _result = self.call().task_start.semaphore.set(semaphore);
    }

    /// The semaphore that the task acquires a permit of before its function starts.
    pub(crate) fn task_semaphore(&self) -> Option<Arc<Semaphore>> {
        self.call().task_start.semaphore.get().cloned().flatten()
    }
}
