//! Calls that continue as tasks. A task is one record, in memory or in the store that replicas share: requests and streams
//! read and change the record ([`record`]). Its function runs in one process, which the record
//! names; a process that has lost a task can change nothing of it.
//!
//! ```text
//! a call of a tool ── continuation.rs ──▶ record (record.rs) + running task (running_task.rs)
//!                                           │  the request has its answer: the task
//!        clients: get, cancel, update,      │
//!        subscribe (capability.rs) ◀─────▶ record ◀── keeper.rs ──▶ running task: its function goes on,
//!                    │                      │                       asks its client, is stopped
//!        watch.rs: those who listen here,   │
//!        wherever the task runs ◀───────────┤
//!                                           │
//!        presence.rs: "this process is there, and has these tasks"
//!                                           │
//!        lost.rs: its process has stopped ──┼──▶ failed
//!                                           └──▶ run again at another process (continuation.rs)
//!        the function has ended ── keeper.rs ──▶ completed, failed or cancelled, until its time to live is over
//! ```
//! `task_observation.rs` tells the observers, from the creation to the end.
//!
//! A tool with a [`TaskMode`](crate::tool::TaskMode) opens the capability on its server. See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

mod capability;
mod continuation;
mod keeper;
mod lost;
mod options;
mod presence;
mod record;
mod running_task;
mod saves;
mod task_observation;
mod watch;

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::{runtime::Handle, sync::Notify, time::timeout};

pub(crate) use continuation::open_for_tool;
pub use continuation::{blocking_task, start_task};
pub use options::TaskOptions;
use presence::{IdList, Presence};
use record::{StoredCall, StoredTask};
use running_task::RunningTask;
use watch::WatchedTask;

use crate::core::{
    admission::{HALF, Owner, Permit, Quota, Shares},
    changes::Hub,
    crypto::random_bytes,
    dispatch::Reply,
    jsonrpc::ProtocolError,
    server::{Server, WeakServer},
    spawn::spawn_on,
    store::{Leases, Records, SealedStore, StoreError, Table, Updated, Versioned, log_store_error},
    sync::Mutex,
    unix_time::{millis, unix_millis},
};

/// A server's tasks.
pub(crate) struct Tasks {
    options: TaskOptions,
    store: SealedStore,
    records: Records<StoredTask>,
    /// Which processes are there that run tasks.
    leases: Leases,
    /// The tasks of each process that may run again, and the list of these processes.
    lists: Records<IdList>,
    presence: Mutex<Presence>,
    /// After how many changes the list of this process's tasks was written; locked meanwhile.
    written_list: tokio::sync::Mutex<u64>,
    /// Those that run in this process.
    running: Mutex<HashMap<Arc<str>, Arc<RunningTask>>>,
    permits: Arc<Shares>,
    watched: Mutex<HashMap<Arc<str>, Arc<WatchedTask>>>,
    hub: Hub,
    /// Notified when no task runs any more.
    idle: Notify,
    /// Set when this process has begun to look after tasks.
    server: OnceLock<WeakServer>,
    /// Whether there is a tool whose tasks may run again.
    may_restart: AtomicBool,
    /// Whether this process has given up its tasks, and has begun no other since then.
    is_stopping: AtomicBool,
}

/// A permit for a running task; dropping it releases the permit and removes the task from the running ones.
pub(crate) struct TaskPermit {
    tasks: Arc<Tasks>,
    pub(crate) task: Arc<RunningTask>,
    _permit: Permit,
}

/// The reply while the store cannot be reached.
fn unreachable(error: &StoreError) -> Reply {
    log_store_error(error, "the tasks in the shared store cannot be reached");
    Reply::unavailable("tasks cannot be reached at the moment\ntry again")
}

/// `-32602`: the task does not exist, for this caller.
fn unknown_task() -> ProtocolError {
    ProtocolError::invalid_params("unknown task: `taskId` is wrong, or the task has expired")
}

impl Tasks {
    /// One owner may have half of all tasks. `hub` notifies the subscribers of the tasks.
    pub(crate) fn new(options: TaskOptions, store: &SealedStore, hub: Hub) -> Arc<Self> {
        let table = Table::new("tasks", options.max_kept, options.max_kept_bytes, HALF);
        Arc::new(Self {
            permits: Shares::new(Quota::half(options.max_running)),
            options,
            store: store.clone(),
            records: Records::new(store, table),
            leases: Leases::new(store),
            lists: Records::new(store, presence::lists()),
            presence: Mutex::default(),
            written_list: tokio::sync::Mutex::default(),
            running: Mutex::default(),
            watched: Mutex::default(),
            hub,
            idle: Notify::new(),
            server: OnceLock::new(),
            may_restart: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        })
    }

    /// Begins to work with other replicas, if there are any, unless that was done. Without a runtime, a later call does it.
    fn begin(self: &Arc<Self>, server: &Server) {
        if !self.store.is_shared() || self.server.get().is_some() {
            return;
        }
        if let Ok(runtime) = Handle::try_current()
            && self.server.set(server.downgrade()).is_ok()
        {
            let tasks = Arc::downgrade(self);
            let listener = self.store.listen(watch::TOPIC);
            let _receives = spawn_on(&runtime, Self::receive_changes(tasks.clone(), listener));
            let _renews = spawn_on(&runtime, Self::keep_lease(tasks.clone()));
            let _looks = spawn_on(&runtime, Self::look_after(tasks));
        }
    }

    fn server(&self) -> Option<Server> {
        self.server.get()?.upgrade()
    }

    /// Starts a task that belongs to a principal, if that is known, and uses the share of `sharer`.
    ///
    /// # Errors
    /// Too many tasks run, of all clients or of this one, or the operating system provides no randomness for an id that cannot be guessed.
    pub(crate) fn start(
        self: &Arc<Self>,
        owner: Option<Arc<str>>,
        sharer: &Owner,
    ) -> Result<TaskPermit, ProtocolError> {
        let random = random_bytes::<18>()
            .map_err(|_| ProtocolError::internal("the operating system provides no randomness"))?;
        let id: Arc<str> = URL_SAFE_NO_PAD.encode(random).into();
        let Some(permit) = self.permits.try_acquire(sharer, 1) else {
            return Err(ProtocolError::internal("too many tasks are running; try again later"));
        };
        let record = StoredTask::new(owner, sharer, &self.options, self.store.process());
        let task = RunningTask::new(id.clone(), record, self.options.ttl);
        self.running.lock().insert(id, task.clone());
        Ok(TaskPermit { tasks: self.clone(), task, _permit: permit })
    }

    /// Makes room for a task here that another process has begun; `None` if there is none, or it runs here already.
    fn adopt(self: &Arc<Self>, id: &Arc<str>, record: &StoredTask) -> Option<Arc<TaskPermit>> {
        let permit = self.permits.try_acquire(&Owner::from_text(record.share.clone()), 1)?;
        let mut running = self.running.lock();
        if running.contains_key(id) {
            return None;
        }
        let task = RunningTask::new(id.clone(), record.clone(), self.options.ttl);
        running.insert(id.clone(), task.clone());
        Some(Arc::new(TaskPermit { tasks: self.clone(), task, _permit: permit }))
    }

    /// The task of that id, if it belongs to this owner and has not expired.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn find(
        self: &Arc<Self>,
        id: &Arc<str>,
        owner: Option<&str>,
    ) -> Result<Option<Versioned<StoredTask>>, Reply> {
        let found = self.records.get(id).await.map_err(|error| unreachable(&error))?;
        let is_theirs = |record: &StoredTask| record.owner.as_deref() == owner && !record.left().is_zero();
        match found.filter(|found| is_theirs(&found.record)) {
            Some(found) => self.look_at(id, found).await.map(Some).map_err(|error| unreachable(&error)),
            None => Ok(None),
        }
    }

    /// The task, whose time to live starts again.
    async fn get(self: &Arc<Self>, id: &Arc<str>, owner: Option<&str>) -> Result<StoredTask, Reply> {
        let Some(found) = self.find(id, owner).await? else { return Err(unknown_task().into()) };
        let mut record = found.record.clone();
        let running = self.running.lock().get(id).cloned();
        if let Some(task) = running {
            // it writes that with its next change
            task.extend();
            record.extend();
        } else if record.extend()
            // a conflict is another change, which extends it as well
            && let Err(error) = self.records.update(id, Some(found), StoredTask::extend).await
        {
            tracing::debug!(%error, "the time to live of a task cannot be extended");
        }
        Ok(record)
    }

    /// Changes the record of a running task; `change` returns whether there is something to change.
    async fn change(
        self: &Arc<Self>,
        id: &Arc<str>,
        owner: Option<&str>,
        mut change: impl FnMut(&mut StoredTask) -> bool + Send,
    ) -> Result<(), Reply> {
        let Some(found) = self.find(id, owner).await? else { return Err(unknown_task().into()) };
        // the task has ended: a late response or cancellation has no effect
        let change = |record: &mut StoredTask| record.is_running() && change(record);
        let updated = self.records.update(id, Some(found), change).await;
        match updated.map_err(|error| unreachable(&error))? {
            Updated::Stored(stored) => {
                let running = self.running.lock().get(id).cloned();
                if let Some(task) = running {
                    task.reload();
                }
                self.tell(id, &stored);
                Ok(())
            }
            Updated::Unchanged(_) => Ok(()),
            Updated::Nothing | Updated::OtherVersion => Err(unknown_task().into()),
            Updated::Full => {
                Err(Reply::unavailable("the store has no room for this change of the task\ntry again"))
            }
        }
    }

    /// Gives up all running tasks: the process is about to end. Those that may run again are released, the others have failed.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        for task in self.running.lock().values() {
            task.release();
        }
    }

    /// After [`stop`](Self::stop), waits until replicas can know of it, for a short time.
    async fn settle_all(&self) {
        const SETTLE: Duration = Duration::from_secs(3);
        if !self.store.is_shared() {
            return;
        }
        let settled = async {
            self.wait_until_idle().await;
            self.leave().await
        };
        match timeout(SETTLE, settled).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log_store_error(&error, "other replicas cannot be told that this one stops"),
            Err(_) => log_store_error(&"the store does not answer", "tasks cannot be handed over"),
        }
    }

    /// Waits until no task runs.
    async fn wait_until_idle(&self) {
        loop {
            let mut idle = pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.running.lock().is_empty() {
                return;
            }
            idle.await;
        }
    }
}

impl StoredTask {
    /// The record of a new task.
    fn new(owner: Option<Arc<str>>, sharer: &Owner, options: &TaskOptions, process: &Arc<str>) -> Self {
        let (created, ttl) = (unix_millis(SystemTime::now()), millis(options.ttl));
        Self {
            owner,
            share: sharer.as_str().clone(),
            created,
            updated: created,
            expires: created.saturating_add(ttl),
            ttl,
            lease: millis(options.lease),
            message: None,
            requests: Vec::new(),
            responses: std::collections::BTreeMap::new(),
            end: None,
            runner: process.clone(),
            released: None,
            is_watched: false,
            restart: None,
        }
    }
}

impl Drop for TaskPermit {
    fn drop(&mut self) {
        let mut running = self.tasks.running.lock();
        running.remove(&self.task.id);
        if running.is_empty() {
            self.tasks.idle.notify_waiters();
        }
    }
}
