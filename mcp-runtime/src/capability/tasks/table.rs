//! The tasks of a server without a shared store, in its memory: at most a number of them and of bytes, of which one client
//! has a share. A client whose share is full cannot start a task before another of its tasks expires.

use std::{fmt, sync::Arc, time::SystemTime};

use crate::core::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    sync::{Mutex, MutexGuard},
};

/// One task as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TaskRecord {
    pub(super) id: Arc<str>,
    /// A digest of the caller that the task belongs to; `None` where callers are not told apart.
    pub(super) owner: Option<Arc<str>>,
    /// The task as `tasks/get` shows it: a JSON object.
    pub(super) json: Box<str>,
    /// From then on it may be forgotten.
    pub(super) expires: SystemTime,
    /// The owner whose share of the table it uses.
    pub(super) sharer: Owner,
}

impl TaskRecord {
    /// The approximate size in memory.
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
        f.debug_struct("TaskRecord").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Tasks in this process's memory.
#[derive(Debug)]
pub(super) struct TaskTable {
    kept: Mutex<OwnedTable<Arc<str>, TaskRecord, SystemTime>>,
}

impl TaskTable {
    /// A table of at most this many tasks and bytes, of which one client may use that percentage.
    pub(super) fn new(max_tasks: usize, max_bytes: usize, share_percent: u8) -> Self {
        let quota = |limit| Quota::new(limit, share_percent);
        Self { kept: Mutex::new(OwnedTable::new(quota(max_tasks), quota(max_bytes))) }
    }

    /// The kept tasks, without those that have expired.
    fn kept(&self, now: SystemTime) -> MutexGuard<'_, OwnedTable<Arc<str>, TaskRecord, SystemTime>> {
        let mut kept = self.kept.lock();
        kept.expire(now);
        kept
    }

    /// Keeps a task, new or changed.
    ///
    /// # Errors
    /// The table is full.
    pub(super) fn put(&self, task: TaskRecord) -> Result<(), &'static str> {
        self.put_at(task, SystemTime::now())
    }

    fn put_at(&self, task: TaskRecord, now: SystemTime) -> Result<(), &'static str> {
        let (owner, id, bytes, expires) =
            (task.sharer.clone(), Arc::clone(&task.id), task.bytes(), task.expires);
        let entry = OwnedEntry { owner, bytes, expires, value: task };
        self.kept(now).put(id, entry).map_err(|full| match full {
            Full::Share => "the tasks of one client fill its share of the store",
            Full::Table => "the store is full of tasks",
        })
    }

    /// The task of that id; `None` if there is none, or it has expired.
    pub(super) fn get(&self, id: &str) -> Option<TaskRecord> {
        self.kept(SystemTime::now()).get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) {
        self.kept(SystemTime::now()).remove(id);
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
        let json = "x".repeat(bytes).into();
        TaskRecord { id: id.into(), owner: None, json, expires: at(expires), sharer: Owner::local() }
    }

    #[test]
    fn a_full_store_takes_nothing_new_until_something_expires() {
        let store = TaskTable::new(2, 1 << 20, 50);
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
        let store = TaskTable::new(100, 10_000, 50);
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
        let store = TaskTable::new(4, 1 << 20, 50);
        let of = |id: &str, share: &str| TaskRecord {
            sharer: Owner::from_text(share.into()),
            ..task(id, 10, 100)
        };
        store.put_at(of("a", "192.0.2.1"), at(0)).unwrap();
        store.put_at(of("b", "192.0.2.1"), at(0)).unwrap();
        store.put_at(of("c", "192.0.2.1"), at(0)).expect_err("its share is full");
        store.put_at(of("c", "192.0.2.2"), at(0)).expect("another client");
    }
}
