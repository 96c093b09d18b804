//! What a program sets about tasks: of a tool that is made at run time, of all tasks of a server, and where they are kept.

use std::{fmt, sync::Arc, time::Duration};

use super::{TaskStore, Tasks, task};
use crate::core::{
    bound::Configure,
    config::{LONGEST, Stores},
    server::{Assembly, Named, ServerBuilder},
    tool::{TaskMode, ToolBuilder},
};

/// Options of calls that become tasks.
#[derive(Clone)]
#[must_use]
pub struct TaskOptions {
    /// How long a task is kept after a client has requested it, or it has ended.
    pub(super) ttl: Duration,
    /// The wire's `pollIntervalMs`.
    pub(super) poll_interval: Duration,
    /// How many may run at once.
    pub(crate) max_running: usize,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(10 * 60), poll_interval: Duration::from_secs(1), max_running: 1024 }
    }
}

impl fmt::Debug for TaskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOptions").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

impl TaskOptions {
    /// Sets how long a task is kept: 10 minutes by default, a year at most.
    ///
    /// The time restarts whenever the client gets the task or responds to its requests, when the function reports
    /// progress or sends a request, and when it ends. After it the task is removed; a function that is still running is
    /// dropped. The wire's `ttlMs` counts from the task's creation, so it grows.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets how often clients should poll a task: the wire's `pollIntervalMs`; 1 second by default.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets how many tasks may run at once; 1024 by default, and at most
    /// [half](crate::config::Limits::max_share_percent) of them for one client. More are refused.
    pub fn max_running(mut self, tasks: usize) -> Self {
        self.max_running = tasks;
        self
    }
}

impl ToolBuilder {
    /// Sets how its calls become tasks; by default they do not.
    pub fn task(mut self, mode: TaskMode) -> Self {
        self.spec_mut().task = Some(task(mode));
        self
    }
}

fn open_tasks(assembly: &mut Assembly<'_>) {
    let _opened = assembly.open::<Tasks>();
}

impl ServerBuilder {
    /// Sets options of calls that become tasks, and declares tasks from the start.
    ///
    /// Clients read once what a server declares. Without this, a server declares tasks once it has a tool with `task`: if
    /// the first is [added](crate::ServerHandle::add) while the server runs, `.tasks(|tasks| tasks)` lets the clients that
    /// are connected by then know it.
    pub fn tasks(mut self, set: impl Configure<TaskOptions>) -> Self {
        let options = self.options.of_capabilities.get::<TaskOptions>().cloned();
        self.options.of_capabilities.insert(set(options.unwrap_or_default()));
        self.open_on_build(Named { key: "tasks", open: open_tasks, mount: |_, _, _| {} });
        self
    }
}

impl Stores {
    /// Sets where tasks and their results are kept; by default in a [`MemoryTasks`](crate::store::MemoryTasks) of
    /// 10 000 tasks and 64 MiB.
    pub fn tasks(mut self, store: impl TaskStore + 'static) -> Self {
        let store: Arc<dyn TaskStore> = Arc::new(store);
        self.of_capabilities.insert(store);
        self
    }
}
