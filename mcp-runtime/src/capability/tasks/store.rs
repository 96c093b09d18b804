//! Tasks and their results, which clients ask for until they expire.

use std::{fmt, sync::Arc, time::SystemTime};

use crate::core::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    store::Stored,
    sync::{Mutex, MutexGuard},
};

/// One task as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskRecord {
    id: Arc<str>,
    owner: Option<Arc<str>>,
    json: Arc<str>,
    running: bool,
    expires: SystemTime,
    share: Option<Arc<str>>,
}

impl TaskRecord {
    /// A record of these parts, as a store reads it back; see the methods for what they are.
    #[must_use]
    pub fn new(
        id: impl Into<Arc<str>>,
        owner: Option<Arc<str>>,
        json: impl Into<Arc<str>>,
        running: bool,
        expires: SystemTime,
    ) -> Self {
        Self { id: id.into(), owner, json: json.into(), running, expires, share: None }
    }

    /// Sets whose share of the store it uses.
    #[must_use]
    pub fn with_share(mut self, share: impl Into<Arc<str>>) -> Self {
        self.share = Some(share.into());
        self
    }

    /// Whose share of the store it uses, for stores that limit each client: a digest of the principal, or an address. It
    /// says nothing about who may see the task.
    #[must_use]
    pub fn share(&self) -> Option<&str> {
        self.share.as_deref()
    }

    /// The wire's `taskId`: random, and a secret wherever callers are not told apart.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A digest of the caller that the task belongs to; absent where callers are not told apart.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The task as `tasks/get` shows it: a JSON object.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Whether its function has not ended yet. Only the process that it runs in can take answers to its questions, or
    /// cancel it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// From then on it may be forgotten.
    #[must_use]
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + 2 * self.id.len()
            + self.owner.as_ref().map_or(0, |owner| owner.len())
            + self.json.len()
    }
}

impl fmt::Debug for TaskRecord {
    /// Without the id and the result, which are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { running, expires, .. } = self;
        f.debug_struct("TaskRecord")
            .field("running", running)
            .field("expires", expires)
            .finish_non_exhaustive()
    }
}

/// Keeps tasks, so that clients can ask for them until they expire.
///
/// The server's own store is [`MemoryTasks`]. With one that replicas share, each of them can tell how any task is
/// doing, and results outlive the process. A running function stays where it runs: answers to its questions and
/// `tasks/cancel` must reach that process, which the `Mcp-Name` header is for (it repeats the task's id).
pub trait TaskStore: Send + Sync {
    /// Keeps a task, new or changed. Once this has ended well, `get` must find it from everywhere.
    fn put(&self, task: TaskRecord) -> Stored<'_, ()>;

    /// The task of that id; `None` when there is none, or it has expired.
    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>>;

    /// Forgets a task.
    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()>;
}

/// Tasks in this process's memory: at most a number of tasks and a number of bytes in total, of which one client may use half.
/// A client whose share is full cannot start a task before another of its tasks expires.
#[derive(Debug)]
pub struct MemoryTasks {
    kept: Mutex<OwnedTable<Arc<str>, TaskRecord, SystemTime>>,
}

/// The tasks of the default store.
const MAX_TASKS: usize = 10_000;
/// Their bytes.
const MAX_BYTES: usize = 64 << 20;

impl Default for MemoryTasks {
    /// Up to 10 000 tasks and 64 MiB.
    fn default() -> Self {
        Self::new(MAX_TASKS, MAX_BYTES)
    }
}

impl MemoryTasks {
    /// A store for at most so many tasks, which together have at most so many bytes.
    #[must_use]
    pub fn new(max_tasks: usize, max_bytes: usize) -> Self {
        Self::of(Quota::half(max_tasks), Quota::half(max_bytes))
    }

    /// The default store, of which one client may use that percentage.
    pub(crate) fn with_share_percent(percent: u8) -> Self {
        Self::of(Quota::new(MAX_TASKS, percent), Quota::new(MAX_BYTES, percent))
    }

    fn of(tasks: Quota, bytes: Quota) -> Self {
        Self { kept: Mutex::new(OwnedTable::new(tasks, bytes)) }
    }

    /// What is kept, without that which has expired.
    fn kept(&self, now: SystemTime) -> MutexGuard<'_, OwnedTable<Arc<str>, TaskRecord, SystemTime>> {
        let mut kept = self.kept.lock();
        kept.expire(now);
        kept
    }

    fn put_at(&self, task: TaskRecord, now: SystemTime) -> Result<(), &'static str> {
        let owner =
            task.share.clone().or_else(|| task.owner.clone()).map_or_else(Owner::local, Owner::from_text);
        let (id, bytes, expires) = (Arc::clone(&task.id), task.bytes(), task.expires);
        let entry = OwnedEntry { owner, bytes, expires, value: task };
        self.kept(now).put(id, entry).map_err(|full| match full {
            Full::Share => "the tasks of one client fill its share of the store",
            Full::Table => "the store is full of tasks",
        })
    }
}

impl TaskStore for MemoryTasks {
    fn put(&self, task: TaskRecord) -> Stored<'_, ()> {
        let put = self.put_at(task, SystemTime::now());
        Box::pin(std::future::ready(put.map_err(Into::into)))
    }

    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>> {
        let found = self.kept(SystemTime::now()).get(id).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()> {
        self.kept(SystemTime::now()).remove(id);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn task(id: &str, bytes: usize, expires: u64) -> TaskRecord {
        TaskRecord::new(id, None, "x".repeat(bytes), false, at(expires))
    }

    #[test]
    fn a_full_store_takes_nothing_new_until_something_expires() {
        let store = MemoryTasks::new(2, 1 << 20);
        store.put_at(task("a", 10, 100), at(0)).unwrap();
        store.put_at(task("b", 10, 200), at(0)).unwrap();
        store.put_at(task("c", 10, 300), at(99)).expect_err("full");
        store.put_at(task("b", 20, 200), at(99)).expect("it is there already");
        store.put_at(task("c", 10, 300), at(100)).expect("`a` has expired");
        let kept = store.kept(at(100));
        assert_eq!(kept.size().0, 2);
        assert!(kept.get("a").is_none());
    }

    #[test]
    fn bytes_are_counted_and_given_back() {
        let store = MemoryTasks::new(100, 10_000);
        store.put_at(task("a", 6_000, 100), at(0)).unwrap();
        store.put_at(task("b", 6_000, 100), at(0)).expect_err("full");
        store.put_at(task("a", 10, 100), at(0)).unwrap();
        store.put_at(task("b", 6_000, 100), at(0)).expect("`a` has shrunk");
        let mut kept = store.kept(at(0));
        kept.remove("a");
        kept.remove("b");
        assert_eq!(kept.size(), (0, 0));
    }

    #[test]
    fn tasks_of_one_client_fill_its_share_only() {
        let store = MemoryTasks::new(4, 1 << 20);
        let of = |id: &str, share: &str| task(id, 10, 100).with_share(share);
        store.put_at(of("a", "192.0.2.1"), at(0)).unwrap();
        store.put_at(of("b", "192.0.2.1"), at(0)).unwrap();
        store.put_at(of("c", "192.0.2.1"), at(0)).expect_err("its share is full");
        store.put_at(of("c", "192.0.2.2"), at(0)).expect("another client");
    }
}
