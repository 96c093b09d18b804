//! The bounds of tasks, as a builder takes them.

use std::{sync::Arc, time::Duration};

use super::ServerBuilder;
use crate::{config::LONGEST, store::TaskStore};

impl ServerBuilder {
    /// Sets how long a task is known: 10 minutes by default, a year at most.
    ///
    /// The time begins anew whenever the client asks for the task or answers its questions, when the function reports
    /// progress or asks, and when it ends. After it the task is gone; a function that is still running is dropped. The
    /// wire's `ttlMs` counts from the task's creation, so it grows.
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.options.tasks.ttl = ttl.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets how often clients should ask for a task: the wire's `pollIntervalMs`; 1 second by default.
    pub fn task_poll_interval(mut self, interval: Duration) -> Self {
        self.options.tasks.poll_interval = interval.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets how many tasks may run at once; 1024 by default, and half of them at most for one caller. One more is
    /// refused.
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.options.tasks.max_running = tasks;
        self
    }

    /// Sets where tasks and their results are kept; by default in this process's memory, in a
    /// [`MemoryTasks`](crate::MemoryTasks) of 10 000 tasks and 64 MiB.
    pub fn task_store(mut self, store: impl TaskStore + 'static) -> Self {
        self.options.tasks.store = Arc::new(store);
        self
    }
}
