//! That this process is there, for the others: a lease that it renews while it runs tasks, and the ids of those of its tasks
//! that may run again, by which others find them when it has stopped. A process without tasks writes nothing.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::{TaskOptions, Tasks, record::now};
use crate::core::{
    config::LONGEST,
    store::{Condition, Record, StoreError, Table, Updated, Written},
    unix_time::millis,
};

/// The list of the processes with tasks that may run again.
pub(super) const PROCESSES: &str = "processes";
/// Bytes of all lists.
const MAX_LISTED_BYTES: usize = 64 << 20;
/// Lists, one for each process and that of the processes.
const MAX_LISTS: usize = 1024;

/// A list of ids: of the tasks of one process that may run again, or of the processes that have such.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct IdList {
    pub(super) ids: BTreeSet<Arc<str>>,
    /// Until when it is kept, in milliseconds since 1970.
    expires: u64,
}

impl Record for IdList {
    fn owner(&self) -> &str {
        // the only owner, which has all of the table
        "local"
    }

    fn expires_in(&self) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(now()))
    }
}

pub(super) fn lists() -> Table {
    Table::new("restartable-tasks", MAX_LISTS, MAX_LISTED_BYTES, 100)
}

/// What this process has told the others of itself.
#[derive(Default)]
pub(super) struct Presence {
    /// Until when no other process takes over its tasks.
    until: Option<Instant>,
    /// The tasks that may run again.
    pub(super) ids: BTreeSet<Arc<str>>,
    /// How often they have changed.
    changes: u64,
}

impl Tasks {
    fn is_lease_left(&self, least: Duration) -> bool {
        !self.store.is_shared()
            || self.presence.lock().until.is_some_and(|until| until > Instant::now() + least)
    }

    /// Whether no other process can have taken over its tasks.
    pub(super) fn has_lease(&self) -> bool {
        self.is_lease_left(Duration::ZERO)
    }

    /// Has a lease from here on, for a third of its time at least.
    ///
    /// # Errors
    /// The store cannot be reached, or too many processes have one.
    pub(super) async fn ensure_lease(&self) -> Result<(), StoreError> {
        if self.is_lease_left(self.options.lease / 3) { Ok(()) } else { self.renew_lease().await }
    }

    /// Renews the lease. Others wait for half of one longer than this process counts on it: that long they may have to reach
    /// the store again.
    pub(super) async fn renew_lease(&self) -> Result<(), StoreError> {
        if !self.store.is_shared() {
            return Ok(());
        }
        let (begun, lease) = (Instant::now(), self.options.lease);
        if !self.leases.hold(self.store.process(), lease * 3 / 2).await? {
            return Err("the lease of this process is another's".into());
        }
        let (before, has_ids) = {
            let mut presence = self.presence.lock();
            (presence.until.replace(begun + lease), !presence.ids.is_empty())
        };
        let was_over = before.is_none_or(|until| until <= begun);
        if has_ids {
            self.write_list(u64::MAX).await?;
            self.join(was_over).await?;
        }
        if was_over && before.is_some() {
            tracing::warn!("this process has not renewed its lease in time; others may have taken its tasks");
            self.running.lock().values().for_each(|task| task.reload());
        }
        Ok(())
    }

    /// Lists a task of this process that may run again, so that others find it.
    pub(super) async fn list(&self, id: &Arc<str>) -> Result<(), StoreError> {
        let (changes, is_first) = {
            let mut presence = self.presence.lock();
            presence.changes += 1;
            presence.ids.insert(id.clone());
            (presence.changes, presence.ids.len() == 1)
        };
        self.write_list(changes).await?;
        if is_first { self.join(true).await } else { Ok(()) }
    }

    /// The task has ended, or another process has it. The list in the store is changed with the next task.
    pub(super) fn unlist(&self, id: &str) {
        let mut presence = self.presence.lock();
        presence.ids.remove(id);
        presence.changes += 1;
    }

    /// How long lists are kept: for as long as any of their tasks may be, and longer.
    fn list_life(&self) -> u64 {
        let TaskOptions { ttl, lease, .. } = self.options;
        millis(ttl.saturating_mul(2).saturating_add(lease * 4).min(LONGEST))
    }

    /// Writes the tasks of this process that may run again, unless that was done after so many changes: those that wait for
    /// it meanwhile are written together.
    async fn write_list(&self, changes: u64) -> Result<(), StoreError> {
        let mut written = self.written_list.lock().await;
        if *written >= changes {
            return Ok(());
        }
        let (ids, changes) = {
            let presence = self.presence.lock();
            (presence.ids.clone(), presence.changes)
        };
        let list = IdList { ids, expires: now().saturating_add(self.list_life()) };
        if self.lists.put(self.store.process(), &list, Condition::Always).await? == Written::Full {
            return Err("the lists of running tasks are too long".into());
        }
        *written = changes;
        Ok(())
    }

    /// Lists this process. With `anew`, the list is written though it has the process: another one may be about to remove it.
    async fn join(&self, anew: bool) -> Result<(), StoreError> {
        let (process, life) = (self.store.process(), self.list_life());
        let join = |list: &mut IdList| {
            let is_new = list.ids.insert(process.clone());
            let is_due = list.expires < now().saturating_add(life / 2);
            list.expires = now().saturating_add(life);
            is_new || is_due || anew
        };
        match self.lists.update_or_create(PROCESSES, IdList::default(), join).await? {
            Updated::Full => Err("the list of processes is too long".into()),
            _ => Ok(()),
        }
    }

    /// Renews the lease as long as tasks run; otherwise it expires.
    pub(super) async fn keep_lease(tasks: Weak<Self>) {
        loop {
            let wait = {
                let Some(tasks) = tasks.upgrade() else { return };
                let lease = tasks.options.lease;
                let is_idle = tasks.running.lock().is_empty();
                match if is_idle { Ok(()) } else { tasks.renew_lease().await } {
                    Ok(()) => lease / 3,
                    Err(error) => {
                        tracing::debug!(%error, "the lease of this process cannot be renewed");
                        lease / 10
                    }
                }
            };
            sleep(wait).await;
        }
    }

    /// Gives up the lease, after all tasks: others need not wait for it.
    pub(super) async fn leave(&self) -> Result<(), StoreError> {
        let held = self.presence.lock().until.take();
        if held.is_some() { self.leases.release(self.store.process()).await } else { Ok(()) }
    }
}
