//! The store of tasks: the trait, and the store in memory, which is bounded in tasks and in bytes.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    pin::Pin,
    sync::Arc,
    time::SystemTime,
};

use crate::sync::{Mutex, MutexGuard};

/// What a [`TaskStore`] returns: a boxed future, since a store may have to wait for a network.
pub type Stored<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn std::error::Error + Send + Sync>>> + Send + 'a>>;

/// One task as a [`TaskStore`] keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskRecord {
    id: Arc<str>,
    owner: Option<Arc<str>>,
    json: Arc<str>,
    running: bool,
    expires: SystemTime,
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
        Self { id: id.into(), owner, json: json.into(), running, expires }
    }

    /// The wire's `taskId`: random, and a secret where callers are not authenticated.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A digest of the caller that the task belongs to; absent where callers are not
    /// authenticated.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The task as `tasks/get` returns it: a JSON object.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Whether its function still runs. Only the process that it runs in can deliver responses to its client requests,
    /// or cancel it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// The time from which on the store may remove it.
    #[must_use]
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// Its approximate size in memory.
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

/// Keeps tasks, so that clients can request them until they expire.
///
/// The default store is [`MemoryTasks`]. With a store that replicas share, each of them can report the state of any
/// task, and results outlive the process. A running function does not move: `tasks/cancel` and responses to its client
/// requests must reach its process. Route them by the `Mcp-Name` header, which repeats the task's id.
pub trait TaskStore: Send + Sync {
    /// Inserts or replaces a task. After success, `get` must find it from every replica.
    fn put(&self, task: TaskRecord) -> Stored<'_, ()>;

    /// The task of that id; `None` if it is unknown or has expired.
    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>>;

    /// Removes a task.
    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()>;
}

/// Tasks in this process's memory, bounded in number and in bytes; when it is full, no task can start before another
/// expires.
#[derive(Debug)]
pub struct MemoryTasks {
    max_tasks: usize,
    max_bytes: usize,
    table: Mutex<TaskTable>,
}

#[derive(Debug, Default)]
struct TaskTable {
    records: HashMap<Arc<str>, TaskRecord>,
    by_expiry: BTreeSet<(SystemTime, Arc<str>)>,
    bytes: usize,
}

impl Default for MemoryTasks {
    /// Up to 10 000 tasks and 64 MiB.
    fn default() -> Self {
        Self::new(10_000, 64 << 20)
    }
}

impl MemoryTasks {
    /// A store for at most `max_tasks` tasks, which together have at most `max_bytes` bytes.
    #[must_use]
    pub fn new(max_tasks: usize, max_bytes: usize) -> Self {
        Self { max_tasks, max_bytes, table: Mutex::default() }
    }

    /// Locks the table and removes the expired tasks.
    fn table(&self, now: SystemTime) -> MutexGuard<'_, TaskTable> {
        let mut table = self.table.lock();
        while let Some((expires, id)) = table.by_expiry.first()
            && *expires <= now
        {
            let id = Arc::clone(id);
            table.remove(&id);
        }
        table
    }

    fn put_at(&self, task: TaskRecord, now: SystemTime) -> Result<(), String> {
        let mut table = self.table(now);
        let before = table.records.get(&task.id).map_or(0, TaskRecord::bytes);
        if before == 0 && table.records.len() >= self.max_tasks {
            return Err(format!("the limit of {} tasks is reached", self.max_tasks));
        }
        if table.bytes - before + task.bytes() > self.max_bytes {
            return Err(format!("the limit of {} bytes is reached", self.max_bytes));
        }
        table.remove(&task.id);
        table.bytes += task.bytes();
        table.by_expiry.insert((task.expires, Arc::clone(&task.id)));
        table.records.insert(Arc::clone(&task.id), task);
        Ok(())
    }
}

impl TaskTable {
    fn remove(&mut self, id: &str) {
        if let Some(record) = self.records.remove(id) {
            self.bytes -= record.bytes();
            self.by_expiry.remove(&(record.expires, record.id));
        }
    }
}

impl TaskStore for MemoryTasks {
    fn put(&self, task: TaskRecord) -> Stored<'_, ()> {
        let result = self.put_at(task, SystemTime::now());
        Box::pin(std::future::ready(result.map_err(Into::into)))
    }

    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>> {
        let record = self.table(SystemTime::now()).records.get(id).cloned();
        Box::pin(std::future::ready(Ok(record)))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, ()> {
        self.table(SystemTime::now()).remove(id);
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
    fn a_full_store_takes_no_new_task_until_one_expires() {
        let store = MemoryTasks::new(2, 1 << 20);
        store.put_at(task("a", 10, 100), at(0)).unwrap();
        store.put_at(task("b", 10, 200), at(0)).unwrap();
        store.put_at(task("c", 10, 300), at(99)).expect_err("full");
        store.put_at(task("b", 20, 200), at(99)).expect("it replaces a task");
        store.put_at(task("c", 10, 300), at(100)).expect("`a` has expired");
        let table = store.table(at(100));
        assert_eq!(table.records.len(), 2);
        assert!(!table.records.contains_key("a"));
    }

    #[test]
    fn bytes_are_counted_and_released() {
        let store = MemoryTasks::new(100, 10_000);
        store.put_at(task("a", 6_000, 100), at(0)).unwrap();
        store.put_at(task("b", 6_000, 100), at(0)).expect_err("full");
        store.put_at(task("a", 10, 100), at(0)).unwrap();
        store.put_at(task("b", 6_000, 100), at(0)).expect("`a` has shrunk");
        let mut table = store.table(at(0));
        table.remove("a");
        table.remove("b");
        assert_eq!((table.bytes, table.by_expiry.len()), (0, 0));
    }
}
