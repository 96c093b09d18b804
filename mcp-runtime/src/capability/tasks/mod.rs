//! Calls that continue as tasks: the tasks that run in this process, their owners, limits and expiry.
//!
//! A function runs in one process; what clients see of its task is also in a table in memory, or in the store that replicas
//! share ([`replica`]). A tool with a [`TaskMode`](crate::tool::TaskMode) opens the capability on its server.
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

mod capability;
mod continuation;
mod options;
mod replica;
mod running_task;
mod table;
mod task_observation;

use std::{collections::HashMap, fmt, pin::pin, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::{sync::Notify, time::timeout};

pub(crate) use continuation::open_for_tool;
pub use continuation::{blocking_task, start_task};
pub use options::TaskOptions;
use replica::{Replicas, StoredCall, StoredCopy, StoredTask};
use running_task::{FinalReply, RunningTask, StoreUpdate, TaskEnd, TaskOwners, TaskSummary};
use table::{TaskRecord, TaskTable};

use crate::core::{
    admission::{Owner, Permit, Quota, Shares},
    changes::Hub,
    crypto::random_bytes,
    dispatch::Reply,
    jsonrpc::ProtocolError,
    log_limit::log_store_error,
    sync::Mutex,
};

/// A server's tasks.
pub(crate) struct Tasks {
    running: Mutex<HashMap<Arc<str>, Arc<RunningTask>>>,
    permits: Arc<Shares>,
    options: TaskOptions,
    /// The tasks of this process.
    table: TaskTable,
    /// Set if replicas share their tasks.
    replicas: Option<Replicas>,
    /// Notified when no task runs any more.
    idle: Notify,
    hub: Hub,
}

/// A permit for a running task; dropping it releases the permit and removes the task from the running ones.
#[derive(Debug)]
pub(crate) struct TaskPermit {
    tasks: Arc<Tasks>,
    pub(crate) task: Arc<RunningTask>,
    _permit: Permit,
}

/// A task that a client requests, without a shared store.
#[derive(Debug)]
pub(crate) enum KnownTask {
    Running(Arc<RunningTask>),
    Ended(TaskRecord),
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tasks {
    /// One owner may have that percentage of all tasks. `hub` notifies the subscribers of the tasks.
    pub(crate) fn new(
        options: TaskOptions,
        replicas: Option<Replicas>,
        share_percent: u8,
        hub: Hub,
    ) -> Arc<Self> {
        let permits = Shares::new(Quota::new(options.max_running, share_percent));
        let table = TaskTable::new(options.max_kept, options.max_kept_bytes, share_percent);
        let idle = Notify::new();
        Arc::new(Self { running: Mutex::default(), permits, options, table, replicas, idle, hub })
    }

    /// Starts a task that belongs to a principal, if that is known, and uses the share of `sharer`.
    ///
    /// # Errors
    /// Too many tasks run, of all clients or of this one, or the operating system provides no randomness for an id that cannot be guessed.
    pub(crate) fn start(
        self: &Arc<Self>,
        owner: Option<Arc<str>>,
        sharer: Owner,
    ) -> Result<TaskPermit, ProtocolError> {
        let random = random_bytes::<18>()
            .map_err(|_| ProtocolError::internal("the operating system provides no randomness"))?;
        let id: Arc<str> = URL_SAFE_NO_PAD.encode(random).into();
        let Some(permit) = self.permits.try_acquire(&sharer, 1) else {
            return Err(ProtocolError::internal("too many tasks are running; try again later"));
        };
        let owners = TaskOwners { owner, sharer };
        let is_shared = self.replicas.is_some();
        let task = RunningTask::new(id.clone(), owners, self.options.ttl, self.hub.clone(), is_shared);
        self.running.lock().insert(id, task.clone());
        Ok(TaskPermit { tasks: self.clone(), task, _permit: permit })
    }

    /// Runs a task here that another process has begun.
    fn adopt(self: &Arc<Self>, id: &Arc<str>, record: &StoredTask, permit: Permit) -> Arc<TaskPermit> {
        let owners =
            TaskOwners { owner: record.owner.clone(), sharer: Owner::from_text(record.share.clone()) };
        let task = RunningTask::new(id.clone(), owners, self.options.ttl, self.hub.clone(), true);
        task.inherit(record);
        self.running.lock().insert(id.clone(), task.clone());
        Arc::new(TaskPermit { tasks: self.clone(), task, _permit: permit })
    }

    /// The task of that id, if it belongs to this owner and runs in this process.
    pub(crate) fn running(&self, id: &str, owner: Option<&str>) -> Option<Arc<RunningTask>> {
        let task = self.running.lock().get(id).cloned()?;
        (task.owners.owner.as_deref() == owner && !task.has_expired()).then_some(task)
    }

    /// The task of that id, if it belongs to this owner.
    pub(crate) fn find(&self, id: &str, owner: Option<&str>) -> Option<KnownTask> {
        if let Some(task) = self.running(id, owner) {
            return Some(KnownTask::Running(task));
        }
        self.table.get(id).filter(|record| record.owner.as_deref() == owner).map(KnownTask::Ended)
    }

    /// Cancels all running tasks: the process is about to end, and clients can no longer request them. Those that replicas
    /// share are given up, or have failed.
    pub(crate) fn stop(&self) {
        for task in self.running.lock().values() {
            task.stop(if self.replicas.is_some() { TaskEnd::Stopped } else { TaskEnd::Cancelled });
        }
    }

    /// After [`stop`](Self::stop), waits until replicas can know of it, for a short time.
    async fn settle(&self) {
        const SETTLE: Duration = Duration::from_secs(3);
        let Some(replicas) = &self.replicas else { return };
        let settled = async {
            self.wait_until_idle().await;
            replicas.leave(true).await
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

impl TaskPermit {
    /// Saves the new task, so that clients can request it. Of a task that replicas share, returns its record; with `call`,
    /// another of them may run it again.
    ///
    /// # Errors
    /// The store is full, or cannot be reached.
    pub(crate) async fn save(&self, call: Option<StoredCall>) -> Result<Option<StoredCopy>, Reply> {
        let refused = |error: &dyn fmt::Display| {
            log_store_error(error, "a task cannot be saved");
            "the task cannot be saved\ntry again later"
        };
        if let Some(replicas) = &self.tasks.replicas {
            let created = replicas.create(&self.tasks, &self.task, call).await;
            return created.map(Some).map_err(|error| Reply::unavailable(refused(&error)));
        }
        let StoreUpdate::Running(record) = self.task.store_update() else { return Ok(None) };
        self.tasks.table.put(record).map_err(|error| ProtocolError::internal(refused(&error)))?;
        Ok(None)
    }

    /// Saves every change of the task, until it has ended.
    pub(crate) async fn save_changes(&self) {
        let (task, table) = (&self.task, &self.tasks.table);
        loop {
            task.wait_for_change().await;
            match task.store_update() {
                StoreUpdate::Running(record) => {
                    if let Err(error) = table.put(record) {
                        // the next change saves it, and requests for a running task do not read the table
                        tracing::debug!(error, "a task's progress cannot be saved");
                    }
                }
                StoreUpdate::Ended(record) => {
                    if let Err(error) = table.put(record) {
                        log_store_error(&error, "a task's result cannot be saved");
                        let lost = ProtocolError::internal("the result could not be saved");
                        task.replace_end(TaskEnd::Failed(lost));
                        self.save_failure();
                    }
                    return;
                }
                StoreUpdate::Expired => return table.remove(&task.id),
            }
        }
    }

    fn save_failure(&self) {
        if let StoreUpdate::Ended(record) = self.task.store_update()
            && let Err(error) = self.tasks.table.put(record)
        {
            log_store_error(&error, "the loss of a task's result cannot be saved");
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

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use serde_json::Value;

    use super::*;
    use crate::core::{
        changes::{ListChanges, Subscriber},
        context::{ClientFeature, PendingRequest, TaskHandle as _},
    };

    struct EmptyResult;
    impl FinalReply for EmptyResult {
        fn error(&self) -> Option<&ProtocolError> {
            None
        }
        fn is_tool_error(&self) -> bool {
            false
        }
        fn write_result(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(b"{}");
        }
    }

    fn notifications(subscriber: &mut Subscriber) -> Vec<Value> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match subscriber.poll(&mut cx) {
            Poll::Ready(change) => serde_json::from_slice(&change.notification(|_| {})).ok(),
            Poll::Pending => None,
        })
        .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscriber_gets_the_current_state_of_a_task_and_keeps_it_from_expiring() {
        let hub = Hub::default();
        let options = TaskOptions { ttl: Duration::from_secs(60), ..TaskOptions::default() };
        let tasks = Tasks::new(options, None, 50, hub.clone());
        let (subscribed, other) =
            (tasks.start(None, Owner::local()).unwrap(), tasks.start(None, Owner::local()).unwrap());
        let filter = hub.filter(ListChanges::default(), &Owner::local());
        let mut subscriber = hub.subscribe(filter.clone(), None, None, &Owner::local()).unwrap();
        assert!(subscribed.task.subscribe(&filter));

        other.task.report_progress(1.0, None, None);
        assert_eq!(notifications(&mut subscriber), [] as [Value; 0], "another task");
        subscribed.task.report_progress(1.0, None, Some("one".into()));
        subscribed.task.report_progress(2.0, None, Some("two".into()));
        let messages = notifications(&mut subscriber);
        assert_eq!(messages.len(), 1, "one notification for both changes");
        assert_eq!(messages[0]["method"], "notifications/tasks");
        assert_eq!(messages[0]["params"]["statusMessage"], "two");
        assert_eq!(messages[0]["params"]["taskId"], *subscribed.task.id);

        let limit = Duration::from_secs(600);
        assert!(timeout(limit, subscribed.task.wait_for_stop()).await.is_err(), "it has a subscriber");
        assert!(timeout(limit, other.task.wait_for_stop()).await.is_ok());
        subscribed.task.end(TaskEnd::Replied(Arc::new(EmptyResult)));
        assert_eq!(notifications(&mut subscriber)[0]["params"]["status"], "completed");
        assert!(!subscribed.task.subscribe(&filter), "it no longer changes");

        let third = tasks.start(None, Owner::local()).unwrap();
        assert!(third.task.subscribe(&filter));
        drop((subscriber, filter));
        assert!(timeout(limit, third.task.wait_for_stop()).await.is_ok(), "it has no subscriber");
    }
    #[tokio::test(start_paused = true)]
    async fn a_task_that_waits_for_its_client_expires_though_that_listens() {
        let hub = Hub::default();
        let options = TaskOptions { ttl: Duration::from_secs(60), ..TaskOptions::default() };
        let tasks = Tasks::new(options, None, 50, hub.clone());
        let waiting = tasks.start(None, Owner::local()).unwrap();
        let filter = hub.filter(ListChanges::default(), &Owner::local());
        let _subscriber = hub.subscribe(filter.clone(), None, None, &Owner::local()).unwrap();
        assert!(waiting.task.subscribe(&filter));
        let request = PendingRequest {
            key: "name".into(),
            requires: ClientFeature::Roots,
            method: "roots/list",
            params: b"{}".to_vec(),
        };
        let _response = waiting.task.request_input(&request);
        let limit = Duration::from_secs(600);
        assert!(timeout(limit, waiting.task.wait_for_stop()).await.is_ok());
    }
}
