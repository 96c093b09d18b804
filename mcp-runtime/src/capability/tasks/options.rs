//! Options about tasks: of a tool that is made at run time, and of all tasks of a server.

use std::time::Duration;

use super::Tasks;
use crate::core::{
    bound::Configure,
    config::LONGEST,
    server::{Assembly, Named, ServerBuilder},
    tool::{TaskMode, ToolBuilder},
};

/// The bounds of a lease.
const LEASE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5 * 60)];

/// Options of calls that become tasks.
#[derive(Debug, Clone)]
#[must_use]
pub struct TaskOptions {
    /// How long a task is kept after a client has requested it, or it has ended.
    pub(super) ttl: Duration,
    /// How many may run at once.
    pub(crate) max_running: usize,
    /// How many are kept, running or not.
    pub(crate) max_kept: usize,
    /// Their bytes.
    pub(crate) max_kept_bytes: usize,
    /// How long a replica that has stopped is waited for.
    pub(super) lease: Duration,
}

impl TaskOptions {
    pub(crate) fn new() -> Self {
        Self {
            ttl: Duration::from_secs(10 * 60),
            max_running: 1024,
            max_kept: 10_000,
            max_kept_bytes: 64 << 20,
            lease: Duration::from_secs(10),
        }
    }

    /// Sets how long a task is kept: 10 minutes by default, a year at most.
    ///
    /// The time restarts whenever the client gets the task or responds to its requests, when the function reports
    /// progress or sends a request, and when it ends. After it the task is removed; a function that is still running is
    /// dropped. The wire's `ttlMs` counts from the task's creation, so it grows.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets how many tasks may run at once; 1024 by default, and at most
    /// half of them for one client. More are refused.
    pub fn max_running(mut self, tasks: usize) -> Self {
        self.max_running = tasks;
        self
    }

    /// Sets how many tasks are kept, running or ended: 10,000 by default, at most half of them for one client. With a
    /// [shared store](crate::ServerBuilder::shared), of all replicas together.
    pub fn max_kept(mut self, tasks: usize) -> Self {
        self.max_kept = tasks;
        self
    }

    /// Sets for how long other replicas wait for one that does not answer, before its tasks are restarted or `failed`: 10
    /// seconds by default, from 100 milliseconds to 5 minutes.
    ///
    /// It has a meaning with a [shared store](crate::ServerBuilder::shared) only: while tasks run, each replica writes to it
    /// three times in a lease that it is there. The tasks of a replica that has stopped are taken over within two leases.
    /// See [many replicas](crate::guide::cluster).
    pub fn lease(mut self, lease: Duration) -> Self {
        let [shortest, longest] = LEASE;
        self.lease = lease.clamp(shortest, longest);
        self
    }
}

impl ToolBuilder {
    /// Sets how its calls become tasks; by default they do not.
    pub fn task(mut self, mode: TaskMode) -> Self {
        self.0.task = Some(mode);
        self
    }

    /// Lets another replica run the handler again if the one that runs a task has stopped, as `task(restart)` does in an
    /// attribute; the tool must be `idempotent`, and have a [`task`](Self::task) mode other than `Manual`.
    ///
    /// It has an effect if replicas [share a store](crate::ServerBuilder::shared). The handler gets the same arguments, the
    /// same caller, and what it has kept with [`Context::once`](crate::Context::once).
    pub fn restart_task(mut self) -> Self {
        self.0.restarts_task = true;
        self
    }
}

fn open_tasks(assembly: &mut Assembly<'_>) {
    let _opened = assembly.open(Tasks::open);
}

impl ServerBuilder {
    /// Sets options of calls that become tasks, and declares tasks from the start.
    ///
    /// Clients read once what a server declares. Without this, a server declares tasks once it has a tool with `task`: if
    /// the first is [added](crate::ServerHandle::add) while the server runs, `.tasks(|tasks| tasks)` lets the clients that
    /// are connected by then know it.
    pub fn tasks(mut self, set: impl Configure<TaskOptions>) -> Self {
        let options = self.options.of_capabilities.get::<TaskOptions>().cloned();
        self.options.of_capabilities.insert(set(options.unwrap_or_else(TaskOptions::new)));
        self.open_on_build(Named { key: "tasks", open: open_tasks, mount: |_, _, _| {} });
        self
    }
}
