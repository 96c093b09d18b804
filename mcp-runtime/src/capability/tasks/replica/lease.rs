//! That this process is there, for the others: a lease that it renews while it runs tasks, its place in the list of
//! processes, and the ids of its tasks, by which others find them when it has stopped. A process without tasks writes
//! nothing.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Replicas, TRIES, Tasks};
use crate::core::{
    config::LONGEST,
    store::{Condition, StoreError, Table, Value, Write, Written},
    sync::Mutex,
};

/// Processes that share tasks.
const MAX_PROCESSES: usize = 1024;
/// Parts of the list of a process's tasks, each of which is written as a whole.
const BUCKETS: usize = 32;
/// The value of a lease: its process is there, or has given it up.
const RUNNING: &[u8] = b"running";
const LEFT: &[u8] = b"left";
/// The key of the list of processes.
const LIST: &str = "list";
/// Everything of one server has one owner.
const OWNER: &str = "local";

/// Leases, and the list of processes.
pub(super) fn processes() -> Table {
    Table::new("task-processes", MAX_PROCESSES + 1, 1 << 20, 100)
}

/// The index of the tasks that each process runs.
pub(super) fn index() -> Table {
    Table::new("task-index", MAX_PROCESSES * BUCKETS, 256 << 20, 100)
}

/// A part of the list of this process's tasks.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    ids: Mutex<BucketIds>,
    /// Which of its states the store has, and since when; locked while it is written.
    written: tokio::sync::Mutex<Option<(u64, Instant)>>,
}

#[derive(Debug, Default)]
struct BucketIds {
    ids: BTreeSet<Arc<str>>,
    changes: u64,
}

pub(super) fn make_buckets() -> Vec<Bucket> {
    (0..BUCKETS).map(|_| Bucket::default()).collect()
}

/// Whether another process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Running,
    /// It has given up its tasks.
    Left,
    Missing,
}

impl Replicas {
    /// How long what others find tasks by is kept, and after which time it is written again.
    fn list_life(&self) -> [Duration; 2] {
        let life = self.ttl.saturating_mul(2).saturating_add(self.lease * 4).min(LONGEST);
        [life, life / 4]
    }

    /// Whether no other process can have taken over its tasks.
    pub(super) fn has_lease(&self) -> bool {
        self.held.lock().until.is_some_and(|until| until > Instant::now())
    }

    /// Has a lease from here on, for a third of its time at least.
    ///
    /// # Errors
    /// The store cannot be reached, or too many processes have one.
    pub(super) async fn ensure_lease(&self, tasks: &Tasks) -> Result<(), StoreError> {
        let is_enough =
            || self.held.lock().until.is_some_and(|until| until > Instant::now() + self.lease / 3);
        if is_enough() {
            return Ok(());
        }
        let _renewing = self.renewing.lock().await;
        if is_enough() {
            return Ok(());
        }
        self.renew(tasks).await?;
        if self.has_left.swap(false, Ordering::Relaxed) {
            self.has_returned.store(true, Ordering::Relaxed);
        }
        self.wake.notify_one();
        Ok(())
    }

    /// Renews the lease; `renewing` is locked.
    async fn renew(&self, tasks: &Tasks) -> Result<(), StoreError> {
        let (begun, before) = (Instant::now(), self.held.lock().until);
        let write =
            Write { bytes: RUNNING, owner: OWNER, expires_in: self.lease, condition: Condition::Always };
        if self.store.put(&self.processes, &self.process, write).await? == Written::Full {
            return Err("too many processes share tasks".into());
        }
        let [_, refresh] = self.list_life();
        let listed = self.held.lock().listed;
        if listed.is_none_or(|since| since.elapsed() > refresh) {
            self.edit_list(|list| {
                list.insert(self.process.clone());
            })
            .await?;
            self.held.lock().listed = Some(begun);
        }
        self.held.lock().until = Some(begun + self.lease);
        if before.is_some_and(|until| until <= Instant::now()) {
            tracing::warn!("this process has not renewed its lease in time; others may have taken its tasks");
            tasks.running.lock().values().for_each(|task| task.reload());
        }
        Ok(())
    }

    /// The processes that are listed.
    pub(super) async fn listed_processes(&self) -> Result<BTreeSet<Arc<str>>, StoreError> {
        Ok(self.read_list().await?.0)
    }

    async fn read_list(&self) -> Result<(BTreeSet<Arc<str>>, Condition), StoreError> {
        Ok(match self.store.get(&self.processes, LIST).await? {
            None => (BTreeSet::new(), Condition::Absent),
            Some(Value { bytes, version }) => {
                (serde_json::from_slice(&bytes).unwrap_or_default(), Condition::Version(version))
            }
        })
    }

    /// Changes the list of processes.
    async fn edit_list(&self, edit: impl Fn(&mut BTreeSet<Arc<str>>)) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let (mut list, condition) = self.read_list().await?;
            edit(&mut list);
            if list.len() > MAX_PROCESSES {
                return Err("too many processes share tasks".into());
            }
            let bytes = serde_json::to_vec(&list)?;
            let [expires_in, _] = self.list_life();
            let write = Write { bytes: &bytes, owner: OWNER, expires_in, condition };
            match self.store.put(&self.processes, LIST, write).await? {
                Written::Stored => return Ok(()),
                Written::Conflict => {}
                Written::Full => return Err("the list of processes is too long".into()),
            }
        }
        Err("the list of processes is changed by many at once".into())
    }

    /// Another process is gone, and its tasks with it.
    pub(super) async fn remove_process(&self, process: &Arc<str>) -> Result<(), StoreError> {
        for bucket in 0..BUCKETS {
            self.store.remove(&self.index, &bucket_key(process, bucket)).await?;
        }
        self.store.remove(&self.processes, process).await?;
        self.edit_list(|list| {
            list.remove(process);
        })
        .await
    }

    /// This process is not listed any more, though it should be.
    pub(super) fn forget_listing(&self) {
        self.held.lock().listed = None;
    }

    /// Whether another process is there.
    pub(super) async fn presence(&self, process: &str) -> Result<Presence, StoreError> {
        Ok(match self.store.get(&self.processes, process).await? {
            None => Presence::Missing,
            Some(value) if value.bytes == LEFT => Presence::Left,
            Some(_) => Presence::Running,
        })
    }

    /// The tasks of another process.
    pub(super) async fn tasks_of(&self, process: &str) -> Result<BTreeSet<Arc<str>>, StoreError> {
        let mut all = BTreeSet::new();
        for bucket in 0..BUCKETS {
            if let Some(value) = self.store.get(&self.index, &bucket_key(process, bucket)).await? {
                all.extend(serde_json::from_slice::<Vec<Arc<str>>>(&value.bytes).unwrap_or_default());
            }
        }
        Ok(all)
    }

    /// Lists a task of this process, so that others find it.
    pub(super) async fn list_task(&self, id: &Arc<str>) -> Result<(), StoreError> {
        let (number, bucket) = self.bucket_of(id);
        let change = {
            let mut ids = bucket.ids.lock();
            ids.ids.insert(id.clone());
            ids.changes += 1;
            ids.changes
        };
        self.write_bucket(number, bucket, change).await
    }

    /// The task has ended. The list in the store is changed with its next task.
    pub(super) fn unlist_task(&self, id: &str) {
        let (_, bucket) = self.bucket_of(id);
        let mut ids = bucket.ids.lock();
        ids.ids.remove(id);
        ids.changes += 1;
    }

    fn bucket_of(&self, id: &str) -> (usize, &Bucket) {
        let sum = id.bytes().fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let number = sum % BUCKETS;
        (number, &self.buckets[number])
    }

    /// Writes a part of the list of tasks; those that wait for it meanwhile are written together.
    async fn write_bucket(&self, number: usize, bucket: &Bucket, change: u64) -> Result<(), StoreError> {
        let mut written = bucket.written.lock().await;
        if written.is_some_and(|(changes, _)| changes >= change) {
            return Ok(());
        }
        let (bytes, changes, is_empty) = {
            let ids = bucket.ids.lock();
            (serde_json::to_vec(&ids.ids)?, ids.changes, ids.ids.is_empty())
        };
        let key = bucket_key(&self.process, number);
        if is_empty {
            self.store.remove(&self.index, &key).await?;
            *written = None;
            return Ok(());
        }
        let [expires_in, _] = self.list_life();
        let write = Write { bytes: &bytes, owner: OWNER, expires_in, condition: Condition::Always };
        match self.store.put(&self.index, &key, write).await? {
            Written::Full => Err("the list of running tasks is too long".into()),
            Written::Stored | Written::Conflict => {
                *written = Some((changes, Instant::now()));
                Ok(())
            }
        }
    }

    /// Writes those parts of the list again that would expire, and removes those without a task.
    async fn refresh_buckets(&self) -> Result<(), StoreError> {
        let [_, refresh] = self.list_life();
        for (number, bucket) in self.buckets.iter().enumerate() {
            let Ok(written) = bucket.written.try_lock() else { continue };
            let Some((_, since)) = *written else { continue };
            drop(written);
            let change = {
                let mut ids = bucket.ids.lock();
                if !ids.ids.is_empty() && since.elapsed() <= refresh {
                    continue;
                }
                ids.changes += 1;
                ids.changes
            };
            self.write_bucket(number, bucket, change).await?;
        }
        Ok(())
    }

    /// Gives up the lease: of tasks that were given up with it, others learn at once.
    pub(crate) async fn leave(&self, has_left_tasks: bool) -> Result<(), StoreError> {
        let _renewing = self.renewing.lock().await;
        if std::mem::take(&mut *self.held.lock()).until.is_none() {
            return Ok(());
        }
        self.has_left.store(has_left_tasks, Ordering::Relaxed);
        if has_left_tasks {
            let [expires_in, _] = self.list_life();
            let write = Write { bytes: LEFT, owner: OWNER, expires_in, condition: Condition::Always };
            self.store.put(&self.processes, &self.process, write).await?;
            return Ok(());
        }
        self.refresh_buckets().await?;
        self.store.remove(&self.processes, &self.process).await?;
        self.edit_list(|list| {
            list.remove(&self.process);
        })
        .await
    }
}

fn bucket_key(process: &str, bucket: usize) -> String {
    format!("{process}/{bucket}")
}

impl Tasks {
    /// Renews the lease as long as tasks run.
    pub(super) async fn keep_lease(tasks: Weak<Self>, closed: CancellationToken) {
        let mut idle_since = None;
        loop {
            let (wait, wake, reached) = {
                let Some(tasks) = tasks.upgrade() else { return };
                let Some(replicas) = &tasks.replicas else { return };
                let (lease, wake, reached) =
                    (replicas.lease, replicas.wake.clone(), replicas.reached.clone());
                let wait = if tasks.running.lock().is_empty() {
                    let since = *idle_since.get_or_insert_with(Instant::now);
                    if since.elapsed() < lease {
                        Some(lease / 3)
                    } else {
                        // a task that begins now gets a new lease
                        match replicas.leave(false).await {
                            Ok(()) if tasks.running.lock().is_empty() => None,
                            Ok(()) => Some(Duration::ZERO),
                            Err(_) => Some(lease / 3),
                        }
                    }
                } else {
                    idle_since = None;
                    let renewed = {
                        let _renewing = replicas.renewing.lock().await;
                        // they may have been given up meanwhile
                        let is_idle = tasks.running.lock().is_empty();
                        if is_idle { Ok(()) } else { replicas.renew(&tasks).await }
                    };
                    match renewed {
                        Ok(()) => {
                            if let Err(error) = replicas.refresh_buckets().await {
                                tracing::debug!(%error, "the list of running tasks cannot be written");
                            }
                            Some(lease / 3)
                        }
                        Err(error) => {
                            tracing::debug!(%error, "the lease of this process cannot be renewed");
                            Some(lease / 10)
                        }
                    }
                };
                (wait, wake, reached)
            };
            let woken = async {
                match wait {
                    Some(wait) => sleep(wait).await,
                    None => wake.notified().await,
                }
            };
            tokio::select! {
                () = woken => {}
                // the lease may have ended meanwhile, and others wait for it
                () = reached.notified() => {}
                () = closed.cancelled() => return,
            }
        }
    }
}
