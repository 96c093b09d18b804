//! Calls that go on as tasks: which of them run, whose they are, how long they are known. Dispatch starts and ends
//! them and answers for them; functions report to theirs through the context.
//!
//! A running function is in this process only; what is known of a task is in the [`TaskStore`] as well.
//!
//! See the [Tasks extension](https://github.com/modelcontextprotocol/ext-tasks).

mod live;

use std::{collections::HashMap, fmt, pin::pin, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::sync::Notify;

pub(crate) use live::{FinalReply, RunningTask, StoreUpdate, TaskEnd};

use crate::{
    admission::{SharePermit, Shares},
    crypto::random_bytes,
    events::Hub,
    jsonrpc::ProtocolError,
    store::{MemoryTasks, TaskRecord, TaskStore},
    sync::Mutex,
};

/// The bounds of a server's tasks.
#[derive(Clone)]
pub(crate) struct TaskOptions {
    /// How long a task is known after somebody has asked for it, or it has ended.
    pub(crate) ttl: Duration,
    /// How often clients may ask.
    pub(crate) poll_interval: Duration,
    /// How many may run at once.
    pub(crate) max_running: usize,
    pub(crate) store: Arc<dyn TaskStore>,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(10 * 60),
            poll_interval: Duration::from_secs(1),
            max_running: 1024,
            store: Arc::new(MemoryTasks::default()),
        }
    }
}

impl fmt::Debug for TaskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOptions").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// A server's tasks.
#[derive(Debug)]
pub(crate) struct Tasks {
    running: Mutex<HashMap<Arc<str>, Arc<RunningTask>>>,
    places: Arc<Shares>,
    options: TaskOptions,
    /// The last one has ended.
    idle: Notify,
    hub: Hub,
}

/// A task's place among those that run; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct TaskPermit {
    tasks: Arc<Tasks>,
    pub(crate) live: Arc<RunningTask>,
    _permit: SharePermit,
}

/// A task, as a request finds it.
#[derive(Debug)]
pub(crate) enum FoundTask {
    /// It runs in this process.
    Here(Arc<RunningTask>),
    /// This is known of it.
    Stored(TaskRecord),
}

impl Tasks {
    /// Those who follow a task are told of it by the hub.
    pub(crate) fn new(options: TaskOptions, hub: Hub) -> Arc<Self> {
        let places = Shares::new(options.max_running);
        Arc::new(Self { running: Mutex::default(), places, options, idle: Notify::new(), hub })
    }

    /// Begins a task of that owner.
    ///
    /// # Errors
    /// Too many of them run, or there is no randomness for an id that nobody can guess.
    pub(crate) fn begin(self: &Arc<Self>, owner: Option<Arc<str>>) -> Result<TaskPermit, ProtocolError> {
        let random = random_bytes::<18>().map_err(|_| ProtocolError::internal("there is no randomness"))?;
        let id: Arc<str> = URL_SAFE_NO_PAD.encode(random).into();
        let Some(permit) = self.places.try_acquire(owner.clone()) else {
            return Err(ProtocolError::internal("too many tasks are running; try again later"));
        };
        let TaskOptions { ttl, poll_interval, .. } = &self.options;
        let live = RunningTask::new(id.clone(), owner, *ttl, *poll_interval, self.hub.clone());
        self.running.lock().insert(id, live.clone());
        Ok(TaskPermit { tasks: self.clone(), live, _permit: permit })
    }

    /// The task of that id, if it is this owner's and runs here.
    pub(crate) fn here(&self, id: &str, owner: Option<&str>) -> Option<Arc<RunningTask>> {
        let live = self.running.lock().get(id).cloned()?;
        (live.owner.as_deref() == owner && !live.has_expired()).then_some(live)
    }

    /// The task of that id, if it is this owner's.
    ///
    /// # Errors
    /// The store cannot be asked.
    pub(crate) async fn find(
        &self,
        id: &str,
        owner: Option<&str>,
    ) -> Result<Option<FoundTask>, ProtocolError> {
        if let Some(live) = self.here(id, owner) {
            return Ok(Some(FoundTask::Here(live)));
        }
        match self.options.store.get(id).await {
            Ok(found) => Ok(found.filter(|record| record.owner() == owner).map(FoundTask::Stored)),
            Err(error) => {
                tracing::error!(error = %error, "the store of tasks cannot be read");
                Err(ProtocolError::internal("tasks cannot be looked up at the moment"))
            }
        }
    }

    /// Cancels everything: nobody can ask for it any more.
    pub(crate) fn stop(&self) {
        for live in self.running.lock().values() {
            live.stop(TaskEnd::Cancelled);
        }
    }

    /// Waits until none is running.
    #[cfg_attr(
        not(any(feature = "stdio", feature = "http")),
        expect(dead_code, reason = "only a process comes to its end")
    )]
    pub(crate) async fn ended(&self) {
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
    /// Keeps the new task, so that it can be asked for.
    ///
    /// # Errors
    /// The store has no room, or cannot be reached.
    pub(crate) async fn keep(&self) -> Result<(), ProtocolError> {
        let StoreUpdate::Running(record) = self.live.keep() else { return Ok(()) };
        self.tasks.options.store.put(record).await.map_err(|error| {
            tracing::error!(error = %error, "a task cannot be kept");
            ProtocolError::internal("the task cannot be kept; try again later")
        })
    }

    /// Keeps what changes about the task, until it has ended.
    pub(crate) async fn keep_up(&self) {
        let (live, store) = (&self.live, &self.tasks.options.store);
        loop {
            live.changed().await;
            match live.keep() {
                StoreUpdate::Running(record) => {
                    if let Err(error) = store.put(record).await {
                        // the next change is as good, and it is this process that is asked first
                        tracing::debug!(error = %error, "a task's progress cannot be kept");
                    }
                }
                StoreUpdate::TaskEnd(record) => {
                    if let Err(error) = store.put(record).await {
                        tracing::error!(error = %error, "a task's result cannot be kept");
                        let lost = ProtocolError::internal("the result could not be kept");
                        live.end_instead(TaskEnd::Failed(lost));
                        self.keep_failure().await;
                    }
                    return;
                }
                StoreUpdate::Nothing => {
                    if let Err(error) = store.remove(&live.id).await {
                        tracing::debug!(error = %error, "a task that has expired cannot be forgotten");
                    }
                    return;
                }
            }
        }
    }

    async fn keep_failure(&self) {
        if let StoreUpdate::TaskEnd(record) = self.live.keep()
            && let Err(error) = self.tasks.options.store.put(record).await
        {
            tracing::error!(error = %error, "nor can it be kept that it is lost");
        }
    }
}

impl Drop for TaskPermit {
    fn drop(&mut self) {
        let mut running = self.tasks.running.lock();
        running.remove(&self.live.id);
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
    use crate::{
        context::TaskHandle as _,
        events::{ListChanges, Subscriber},
    };

    struct Nothing;
    impl FinalReply for Nothing {
        fn error(&self) -> Option<&ProtocolError> {
            None
        }
        fn write_result(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(b"{}");
        }
    }

    fn told(follower: &mut Subscriber) -> Vec<Value> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match follower.poll(&mut cx) {
            Poll::Ready(change) => serde_json::from_slice(&change.notification(|_| {})).ok(),
            Poll::Pending => None,
        })
        .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_follows_a_task_is_told_how_it_is_then_and_keeps_it() {
        let hub = Hub::default();
        let options = TaskOptions { ttl: Duration::from_secs(60), ..TaskOptions::default() };
        let tasks = Tasks::new(options, hub.clone());
        let (followed, other) = (tasks.begin(None).unwrap(), tasks.begin(None).unwrap());
        let filter = hub.filter(ListChanges::default());
        let mut follower = hub.follow(filter.clone(), None, false).unwrap();
        assert!(followed.live.follow(&filter));

        other.live.report_progress(1.0, None, None);
        assert_eq!(told(&mut follower), [] as [Value; 0], "another task");
        followed.live.report_progress(1.0, None, Some("one".into()));
        followed.live.report_progress(2.0, None, Some("two".into()));
        let messages = told(&mut follower);
        assert_eq!(messages.len(), 1, "one notification tells of everything so far");
        assert_eq!(messages[0]["method"], "notifications/tasks");
        assert_eq!(messages[0]["params"]["statusMessage"], "two");
        assert_eq!(messages[0]["params"]["taskId"], *followed.live.id);

        let limit = Duration::from_secs(600);
        assert!(tokio::time::timeout(limit, followed.live.given_up()).await.is_err(), "it is followed");
        assert!(tokio::time::timeout(limit, other.live.given_up()).await.is_ok());
        followed.live.end(TaskEnd::Replied(Arc::new(Nothing)));
        assert_eq!(told(&mut follower)[0]["params"]["status"], "completed");
        assert!(!followed.live.follow(&filter), "nothing more will happen to it");

        let third = tasks.begin(None).unwrap();
        assert!(third.live.follow(&filter));
        drop((follower, filter));
        assert!(tokio::time::timeout(limit, third.live.given_up()).await.is_ok(), "nobody follows it now");
    }
}
