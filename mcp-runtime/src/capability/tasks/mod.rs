//! Calls that continue as tasks: the tasks that run in this process, their owners, limits and expiry.
//!
//! A function runs in one process; the state of its task is in the [`TaskStore`] as well. A tool names the capability with
//! [`task`].
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

mod continuation;
mod methods;
mod options;
mod running_task;
mod store;
mod task_observation;

use std::{collections::HashMap, fmt, pin::pin, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::sync::Notify;

pub use continuation::{blocking_task, start_task, task};
pub use options::TaskOptions;
use running_task::{FinalReply, RunningTask, StoreUpdate, TaskEnd, TaskOwners, TaskSummary};
pub use store::{MemoryTasks, TaskRecord, TaskStore};

use crate::core::{
    admission::{Owner, Permit, Quota, Shares},
    changes::Hub,
    crypto::random_bytes,
    jsonrpc::ProtocolError,
    log_limit::log_store_error,
    sync::Mutex,
};

/// A server's tasks.
pub(crate) struct Tasks {
    running: Mutex<HashMap<Arc<str>, Arc<RunningTask>>>,
    permits: Arc<Shares>,
    options: TaskOptions,
    store: Arc<dyn TaskStore>,
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

/// A task that a client requests.
#[derive(Debug)]
pub(crate) enum KnownTask {
    /// It runs in this process.
    Running(Arc<RunningTask>),
    /// It has ended, or runs in another process.
    Stored(TaskRecord),
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
        store: Option<Arc<dyn TaskStore>>,
        share_percent: u8,
        hub: Hub,
    ) -> Arc<Self> {
        let permits = Shares::new(Quota::new(options.max_running, share_percent));
        let store = store.unwrap_or_else(|| Arc::new(MemoryTasks::with_share_percent(share_percent)));
        Arc::new(Self { running: Mutex::default(), permits, options, store, idle: Notify::new(), hub })
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
        let TaskOptions { ttl, poll_interval, .. } = &self.options;
        let owners = TaskOwners { owner, sharer };
        let task = RunningTask::new(id.clone(), owners, *ttl, *poll_interval, self.hub.clone());
        self.running.lock().insert(id, task.clone());
        Ok(TaskPermit { tasks: self.clone(), task, _permit: permit })
    }

    /// The task of that id, if it belongs to this owner and runs in this process.
    pub(crate) fn running(&self, id: &str, owner: Option<&str>) -> Option<Arc<RunningTask>> {
        let task = self.running.lock().get(id).cloned()?;
        (task.owners.owner.as_deref() == owner && !task.has_expired()).then_some(task)
    }

    /// The task of that id, if it belongs to this owner.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn find(
        &self,
        id: &str,
        owner: Option<&str>,
    ) -> Result<Option<KnownTask>, ProtocolError> {
        if let Some(task) = self.running(id, owner) {
            return Ok(Some(KnownTask::Running(task)));
        }
        match self.store.get(id).await {
            Ok(record) => Ok(record.filter(|record| record.owner() == owner).map(KnownTask::Stored)),
            Err(error) => {
                log_store_error(&error, "the task store cannot be read");
                Err(ProtocolError::internal("tasks cannot be looked up at the moment"))
            }
        }
    }

    /// Cancels all running tasks: the process is about to end, and clients can no longer request them.
    pub(crate) fn stop(&self) {
        for task in self.running.lock().values() {
            task.stop(TaskEnd::Cancelled);
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
    /// Saves the new task in the store, so that clients can request it.
    ///
    /// # Errors
    /// The store is full, or cannot be reached.
    pub(crate) async fn save(&self) -> Result<(), ProtocolError> {
        let StoreUpdate::Running(record) = self.task.store_update() else { return Ok(()) };
        self.tasks.store.put(record).await.map_err(|error| {
            log_store_error(&error, "a task cannot be saved");
            ProtocolError::internal("the task cannot be saved\ntry again later")
        })
    }

    /// Saves every change of the task, until it has ended.
    pub(crate) async fn save_changes(&self) {
        let (task, store) = (&self.task, &self.tasks.store);
        loop {
            task.wait_for_change().await;
            match task.store_update() {
                StoreUpdate::Running(record) => {
                    if let Err(error) = store.put(record).await {
                        // the next change saves it, and requests that reach this process do not read the store
                        tracing::debug!(error = %error, "a task's progress cannot be saved");
                    }
                }
                StoreUpdate::Ended(record) => {
                    if let Err(error) = store.put(record).await {
                        log_store_error(&error, "a task's result cannot be saved");
                        let lost = ProtocolError::internal("the result could not be saved");
                        task.replace_end(TaskEnd::Failed(lost));
                        self.save_failure().await;
                    }
                    return;
                }
                StoreUpdate::Expired => {
                    if let Err(error) = store.remove(&task.id).await {
                        tracing::debug!(error = %error, "an expired task cannot be removed");
                    }
                    return;
                }
            }
        }
    }

    async fn save_failure(&self) {
        if let StoreUpdate::Ended(record) = self.task.store_update()
            && let Err(error) = self.tasks.store.put(record).await
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
    use std::{
        task::{Context, Poll, Waker},
        time::Duration,
    };

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
        assert!(
            tokio::time::timeout(limit, subscribed.task.wait_for_stop()).await.is_err(),
            "it has a subscriber"
        );
        assert!(tokio::time::timeout(limit, other.task.wait_for_stop()).await.is_ok());
        subscribed.task.end(TaskEnd::Replied(Arc::new(EmptyResult)));
        assert_eq!(notifications(&mut subscriber)[0]["params"]["status"], "completed");
        assert!(!subscribed.task.subscribe(&filter), "it no longer changes");

        let third = tasks.start(None, Owner::local()).unwrap();
        assert!(third.task.subscribe(&filter));
        drop((subscriber, filter));
        assert!(
            tokio::time::timeout(limit, third.task.wait_for_stop()).await.is_ok(),
            "it has no subscriber"
        );
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
        assert!(tokio::time::timeout(limit, waiting.task.wait_for_stop()).await.is_ok());
    }
}
