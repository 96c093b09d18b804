//! Tasks that replicas share: their records are in the store, and each replica reads and changes them there. Only the
//! process that a record names runs the function, and every change replaces the version that was read: a process that has
//! lost a task can change nothing of it. A message tells another process that a record has changed; one that is lost is
//! found by the record, later.

mod keeper;
mod lease;
mod record;
mod sweep;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::{
    runtime::Handle,
    sync::{
        Notify,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(super) use keeper::StoredCopy;
pub(super) use record::{
    RetriedCall, STOPPED, StoredCall, StoredEnd, StoredRequest, StoredTask, millis, millis_of, raw_json,
};

use self::{
    lease::{Bucket, make_buckets},
    watch::WatchedTask,
};
use super::{TaskOptions, Tasks};
use crate::core::{
    changes::Hub,
    context::InputResponse,
    crypto::random_id,
    dispatch::Reply,
    jsonrpc::ProtocolError,
    log_limit::log_store_error,
    server::Server,
    spawn::spawn_on,
    store::{Condition, Found, Received, SealedStore, StoreError, Table, Write, Written},
    sync::Mutex,
};

/// How often a change is tried of a record that others change at the same time.
const TRIES: usize = 16;
/// Messages to other processes that were not sent yet; what is beyond is found by the records.
const MAX_UNSENT: usize = 1024;
/// Ids of one process in one message.
const MAX_IDS: usize = 64;
/// After a failure.
const RETRY: Duration = Duration::from_millis(250);

/// The part of a process in the tasks that replicas share.
pub(crate) struct Replicas {
    store: SealedStore,
    tasks: Table,
    /// The leases of processes, and which there are.
    processes: Table,
    /// The ids of the tasks that each process runs.
    index: Table,
    /// This process.
    process: Arc<str>,
    ttl: Duration,
    lease: Duration,
    hub: Hub,
    /// Until when other processes wait for this one at least, and since when it is listed.
    held: Mutex<HeldLease>,
    /// Locked while the lease is renewed or given up.
    renewing: tokio::sync::Mutex<()>,
    /// Notified when there is a first task.
    wake: Arc<Notify>,
    /// Notified when the store is reached again.
    reached: Arc<Notify>,
    buckets: Vec<Bucket>,
    watched: Mutex<HashMap<Arc<str>, Arc<WatchedTask>>>,
    /// Processes that are known to be listed, and the tasks of those that are not.
    listed: Mutex<ListedProcesses>,
    unsent: Sender<ChangedTask>,
    /// Until it is begun.
    queue: Mutex<Option<Receiver<ChangedTask>>>,
    has_begun: AtomicBool,
    /// Whether this process has given up its tasks.
    has_left: AtomicBool,
    /// Whether it may be named by records of tasks that it does not run: it has begun others since it has given up those, or has
    /// taken over one without an answer of the store.
    has_returned: AtomicBool,
    closed: CancellationToken,
    _close: DropGuard,
}

#[derive(Debug, Default)]
struct HeldLease {
    until: Option<Instant>,
    listed: Option<Instant>,
}

#[derive(Debug, Default)]
struct ListedProcesses {
    listed: BTreeSet<Arc<str>>,
    unlisted: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// The record of a task in the store.
enum FoundTask {
    Nothing,
    /// Only replicas of another version of this crate can read it.
    OtherVersion,
    Record(Box<StoredTask>, u64),
}

/// A task that another process has to look at.
#[derive(Debug)]
struct ChangedTask {
    process: Arc<str>,
    id: Arc<str>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ChangedTasks {
    ids: Vec<Arc<str>>,
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas").field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// The reply while the store cannot be reached.
fn unreachable(error: &StoreError) -> Reply {
    log_store_error(error, "the tasks in the shared store cannot be reached");
    Reply::unavailable("tasks cannot be reached at the moment\ntry again")
}

impl Replicas {
    /// # Errors
    /// The operating system provides no randomness.
    pub(super) fn new(
        store: &SealedStore,
        options: &TaskOptions,
        share_percent: u8,
        hub: Hub,
    ) -> Result<Self, getrandom::Error> {
        let (unsent, queue) = channel(MAX_UNSENT);
        let closed = CancellationToken::new();
        Ok(Self {
            store: store.clone(),
            tasks: Table::new("tasks", options.max_kept, options.max_kept_bytes, share_percent),
            processes: lease::processes(),
            index: lease::index(),
            process: random_id()?.into(),
            ttl: options.ttl,
            lease: options.lease,
            hub,
            held: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            wake: Arc::default(),
            reached: Arc::default(),
            buckets: make_buckets(),
            watched: Mutex::default(),
            listed: Mutex::default(),
            unsent,
            queue: Mutex::new(Some(queue)),
            has_begun: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            has_returned: AtomicBool::new(false),
            _close: closed.clone().drop_guard(),
            closed,
        })
    }

    /// The record of a task. One of another version of this crate is ignored.
    async fn read(&self, id: &str) -> Result<Option<(StoredTask, u64)>, StoreError> {
        Ok(match self.look_up(id).await? {
            FoundTask::Record(record, version) => Some((*record, version)),
            FoundTask::Nothing | FoundTask::OtherVersion => None,
        })
    }

    /// Looks up the record of a task, where it matters that another version of this crate has written it.
    async fn look_up(&self, id: &str) -> Result<FoundTask, StoreError> {
        Ok(match self.store.find(&self.tasks, id).await? {
            Found::Nothing => FoundTask::Nothing,
            Found::OtherVersion => FoundTask::OtherVersion,
            Found::Value(value) => match StoredTask::from_bytes(&value.bytes) {
                Some(record) => FoundTask::Record(Box::new(record), value.version),
                None => {
                    self.store.log_other_version(&self.tasks);
                    FoundTask::OtherVersion
                }
            },
        })
    }

    /// Puts the record of a task.
    async fn write(
        &self,
        id: &str,
        record: &StoredTask,
        condition: Condition,
    ) -> Result<Written, StoreError> {
        let bytes = record.to_bytes();
        // a running task is removed by its process, or by the one that takes it over
        let longer = if record.is_running() { self.lease * 4 } else { Duration::ZERO };
        let expires_in = record.left().saturating_add(longer).max(Duration::from_millis(1));
        let write = Write { bytes: &bytes, owner: &record.share, expires_in, condition };
        self.store.put(&self.tasks, id, write).await
    }

    /// The record of a task that belongs to this owner and has not expired.
    async fn find(&self, id: &str, owner: Option<&str>) -> Result<Option<(StoredTask, u64)>, Reply> {
        let found = self.read(id).await.map_err(|error| unreachable(&error))?;
        let found = found.filter(|(record, _)| record.owner.as_deref() == owner && !record.left().is_zero());
        if let Some((record, _)) = &found
            && record.is_running()
        {
            self.note_runner(id, record);
        }
        Ok(found)
    }

    /// Has a process be looked at that runs a task and is not listed.
    fn note_runner(&self, id: &str, record: &StoredTask) {
        const MAX_UNLISTED: usize = 64;
        if record.runner == self.process {
            return;
        }
        let mut listed = self.listed.lock();
        if listed.listed.contains(&record.runner) {
            return;
        }
        let has_room = listed.unlisted.len() < MAX_UNLISTED;
        match listed.unlisted.get_mut(&record.runner) {
            Some(ids) if ids.len() < MAX_UNLISTED => {
                ids.insert(id.into());
            }
            None if has_room => {
                listed.unlisted.insert(record.runner.clone(), BTreeSet::from([id.into()]));
            }
            _ => {}
        }
    }

    /// Tells the processes that have to know of a change.
    fn tell(&self, tasks: &Tasks, id: &Arc<str>, record: &StoredTask, version: u64) {
        if record.runner != self.process {
            self.send(&record.runner, id);
        } else if let Some(task) = tasks.running.lock().get(id) {
            task.reload();
        }
        self.tell_watchers(id, record, version);
    }

    fn tell_watchers(&self, id: &Arc<str>, record: &StoredTask, version: u64) {
        for process in &record.watchers {
            if *process == self.process {
                self.show(id, record, version);
            } else {
                self.send(process, id);
            }
        }
    }

    fn send(&self, process: &Arc<str>, id: &Arc<str>) {
        // one that cannot be queued is found by the record
        let _queued = self.unsent.try_send(ChangedTask { process: process.clone(), id: id.clone() });
    }

    /// Changes the record of a running task; `change` returns whether there is something to change.
    async fn change(
        &self,
        tasks: &Tasks,
        id: &str,
        owner: Option<&str>,
        mut change: impl FnMut(&mut StoredTask) -> bool + Send,
    ) -> Result<(), Reply> {
        for _ in 0..TRIES {
            let Some((mut record, version)) = self.find(id, owner).await? else {
                return Err(unknown_task().into());
            };
            // the task has ended: a late response or cancellation has no effect
            if !record.is_running() || !change(&mut record) {
                return Ok(());
            }
            let condition = Condition::Version(version);
            match self.write(id, &record, condition).await.map_err(|error| unreachable(&error))? {
                Written::Stored => {
                    self.tell(tasks, &id.into(), &record, condition.next_version());
                    return Ok(());
                }
                Written::Conflict => {}
                Written::Full => {
                    return Err(Reply::unavailable(
                        "the store has no room for this change of the task\ntry again",
                    ));
                }
            }
        }
        Err(Reply::unavailable("the task is changed by many requests at once\ntry again"))
    }

    /// The task, whose time to live starts again.
    pub(super) async fn get(&self, id: &str, owner: Option<&str>) -> Result<StoredTask, Reply> {
        let Some((mut record, version)) = self.find(id, owner).await? else {
            return Err(unknown_task().into());
        };
        self.extend(id, &mut record, version).await;
        Ok(record)
    }

    /// Starts the time to live of a running task again. It is made a quarter longer, so that not every poll is a change.
    async fn extend(&self, id: &str, record: &mut StoredTask, version: u64) {
        let ttl = Duration::from_millis(record.ttl);
        if !record.is_running() || record.left() >= ttl {
            return;
        }
        record.expires = record::now().saturating_add(record.ttl + record.ttl / 4);
        // a conflict is another change, which starts it as well
        if let Err(error) = self.write(id, record, Condition::Version(version)).await {
            tracing::debug!(%error, "the time to live of a task cannot be extended");
        }
    }

    /// Delivers responses to the function; those without a request are ignored.
    pub(super) async fn respond(
        &self,
        tasks: &Tasks,
        id: &str,
        owner: Option<&str>,
        responses: Vec<(String, Box<str>)>,
    ) -> Result<(), Reply> {
        self.change(tasks, id, owner, |record| {
            let mut is_changed = false;
            for (key, response) in &responses {
                let Some(at) = record.requests.iter().position(|open| *open.key == **key) else { continue };
                let request = record.requests.remove(at);
                let value = raw_json(response.to_string());
                record.responses.insert(key.clone(), InputResponse { digest: request.digest, value });
                is_changed = true;
            }
            record.changed();
            is_changed
        })
        .await
    }

    pub(super) async fn cancel(&self, tasks: &Tasks, id: &str, owner: Option<&str>) -> Result<(), Reply> {
        self.change(tasks, id, owner, |record| {
            record.message = None;
            record.finish(StoredEnd::Cancelled);
            true
        })
        .await
    }

    /// The topic of a process; its name does not tell which process it is.
    fn topic(process: &str) -> String {
        let digest = Sha256::digest(process.as_bytes());
        format!("task-changes/{}", URL_SAFE_NO_PAD.encode(digest.get(..12).unwrap_or(&digest)))
    }

    /// Sends what other processes have to look at.
    async fn send_changes(tasks: Weak<Tasks>, mut queue: Receiver<ChangedTask>) {
        while let Some(first) = queue.recv().await {
            let mut ids: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
            let mut next = Some(first);
            for _ in 0..MAX_IDS {
                let Some(ChangedTask { process, id }) = next else { break };
                let ids = ids.entry(process).or_default();
                if !ids.contains(&id) {
                    ids.push(id);
                }
                next = queue.try_recv().ok();
            }
            if let Some(ChangedTask { process, id }) = next {
                ids.entry(process).or_default().push(id);
            }
            for (process, ids) in ids {
                let Ok(message) = serde_json::to_vec(&ChangedTasks { ids }) else { continue };
                loop {
                    let Some(tasks) = tasks.upgrade() else { return };
                    let Some(replicas) = &tasks.replicas else { return };
                    match replicas.store.publish(&Self::topic(&process), &message).await {
                        Ok(()) => break,
                        Err(error) => tracing::debug!(%error, "another replica cannot be told of a task yet"),
                    }
                    drop(tasks);
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Receives what other processes have changed.
    async fn receive_changes(tasks: Weak<Tasks>, closed: CancellationToken) {
        let mut has_missed = false;
        loop {
            let mut subscription = {
                let Some(tasks) = tasks.upgrade() else { return };
                let Some(replicas) = &tasks.replicas else { return };
                match replicas.store.subscribe(&Self::topic(&replicas.process)).await {
                    Ok(subscription) => subscription,
                    Err(error) => {
                        tracing::debug!(%error, "notices of other replicas about tasks cannot be received yet");
                        has_missed = true;
                        drop(tasks);
                        sleep(RETRY).await;
                        continue;
                    }
                }
            };
            if has_missed && let Some(tasks) = tasks.upgrade() {
                tasks.catch_up().await;
            }
            loop {
                let received = tokio::select! {
                    received = subscription.next() => received,
                    () = closed.cancelled() => return,
                };
                let (Some(received), Some(tasks)) = (received, tasks.upgrade()) else { break };
                let changed = match &received {
                    Received::Message(message) => serde_json::from_slice::<ChangedTasks>(message).ok(),
                    Received::Missed => None,
                };
                match changed {
                    Some(changed) => {
                        for id in &changed.ids {
                            tasks.look_at(id).await;
                        }
                    }
                    None => tasks.catch_up().await,
                }
            }
            has_missed = true;
        }
    }
}

/// `-32602`: the task does not exist, for this caller.
pub(super) fn unknown_task() -> ProtocolError {
    ProtocolError::invalid_params("unknown task: `taskId` is wrong, or the task has expired")
}

impl Tasks {
    /// Begins to work with other replicas, unless that was done. Without a runtime, a later call does it.
    pub(super) fn begin(self: &Arc<Self>, server: &Server) {
        let Some(replicas) = &self.replicas else { return };
        if replicas.has_begun.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        if replicas.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let closed = &replicas.closed;
        if let Some(queue) = replicas.queue.lock().take() {
            let _sends = spawn_on(&runtime, Replicas::send_changes(Arc::downgrade(self), queue));
        }
        let receives = Replicas::receive_changes(Arc::downgrade(self), closed.clone());
        let _receives = spawn_on(&runtime, receives);
        let _renews = spawn_on(&runtime, Self::keep_lease(Arc::downgrade(self), closed.clone()));
        let sweeps = Self::sweep(Arc::downgrade(self), server.downgrade(), closed.clone());
        let _sweeps = spawn_on(&runtime, sweeps);
    }

    /// Another process has changed a task that runs here, or that a client listens to here.
    async fn look_at(&self, id: &Arc<str>) {
        if let Some(task) = self.running.lock().get(id) {
            task.reload();
        }
        if let Some(replicas) = &self.replicas {
            replicas.refresh(id).await;
        }
    }

    /// Messages may have been lost, since the store was away.
    async fn catch_up(&self) {
        self.running.lock().values().for_each(|task| task.reload());
        if let Some(replicas) = &self.replicas {
            replicas.reached.notify_one();
            replicas.refresh_all().await;
        }
    }
}
