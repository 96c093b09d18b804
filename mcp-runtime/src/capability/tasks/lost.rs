//! Tasks whose process has stopped. Each look at a record notices that: the task is `failed`, or released and then run again
//! by a process that has the tool and room for it. Processes with tasks that may run again look after each other: each looks
//! at the next two in the list of them that have a lease, and at those between. A process without a lease has stopped only if
//! the store was there for long enough to renew it, since the store may have been away.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    StoredTask, TaskPermit, Tasks,
    presence::PROCESSES,
    record::{STOPPED, StoredCall, now},
};
use crate::core::{
    connection::{Access, StoredPrincipal},
    jsonrpc::ProtocolError,
    server::{Entry as _, Server},
    spawn::spawn,
    store::{Condition, Found, StoreError, Updated, Versioned},
    tool::ToolEntry,
    unix_time::millis,
};

/// The number of looks at the others during a lease.
const LOOKS: u32 = 8;
/// How many others are looked after.
const NEIGHBOURS: usize = 2;
/// How much longer the others are waited for after this process has reached the store, for the first time or again: up to
/// 5 seconds pass between two attempts to connect to Redis, an attempt takes up to one, and then they renew their leases.
const RETURN: Duration = Duration::from_secs(8);
/// Leases after which what clients listen to is read again.
const REFRESH: u32 = 3;

/// Why a call cannot be run again here.
enum Refusal {
    /// It cannot be run by any process.
    Ever(&'static str),
    /// Another may have the tool, or room for it.
    Here,
}

impl Tasks {
    /// Whether another process has stopped.
    pub(super) async fn has_stopped(&self, process: &str) -> Result<bool, StoreError> {
        if *process == **self.store.process() {
            return Ok(false);
        }
        let has_reached = self.store.reached_for() >= self.options.lease / 2 + RETURN;
        Ok(has_reached && !self.leases.is_held(process).await?)
    }

    /// Whether no process runs a task that has not ended.
    async fn is_lost(&self, id: &str, record: &StoredTask) -> Result<bool, StoreError> {
        if record.released.is_some() {
            return Ok(true);
        }
        if record.runner == *self.store.process() {
            return Ok(!self.running.lock().contains_key(id));
        }
        self.has_stopped(&record.runner).await
    }

    /// Looks at a record that was read: a task that no process runs is run again here, released or ended. Returns the record
    /// as it is then.
    pub(super) async fn look_at(
        self: &Arc<Self>,
        id: &Arc<str>,
        found: Versioned<StoredTask>,
    ) -> Result<Versioned<StoredTask>, StoreError> {
        if !found.record.is_running() || !self.is_lost(id, &found.record).await? {
            return Ok(found);
        }
        let runner = found.record.runner.clone();
        let found = self.change_lost(id, found, |record| {
            let is_lost = record.runner == runner && record.released.is_none();
            if is_lost {
                record.lose();
            }
            is_lost
        });
        let found = found.await?;
        let (Some(call), Some(released)) = (found.record.restart.clone(), found.record.released) else {
            return Ok(found);
        };
        let Some(server) = self.server().filter(|_| !self.is_stopping.load(Ordering::Relaxed)) else {
            return Ok(found);
        };
        let why = match find_tool(&server, &call) {
            Ok(entry) => match self.adopt(id, &found.record) {
                Some(permit) => return self.run_again(&server, permit, found, entry).await,
                None => Refusal::Here,
            },
            Err(refusal) => refusal,
        };
        let why = match why {
            Refusal::Ever(why) => format!("{STOPPED}, {why}"),
            // other processes may look first
            Refusal::Here if now().saturating_sub(released) < millis(self.options.lease / 4) => {
                return Ok(found);
            }
            Refusal::Here => format!("{STOPPED}, and no other can run it again"),
        };
        let fail = self.change_lost(id, found, |record| {
            let is_released = record.released.take().is_some();
            if is_released {
                record.fail(&ProtocolError::internal(&*why));
            }
            is_released
        });
        fail.await
    }

    /// Changes the record of a task that no process runs, and tells those who listen to it; `change` is not called once the
    /// task has ended.
    async fn change_lost(
        &self,
        id: &Arc<str>,
        found: Versioned<StoredTask>,
        mut change: impl FnMut(&mut StoredTask) -> bool + Send,
    ) -> Result<Versioned<StoredTask>, StoreError> {
        let change = |record: &mut StoredTask| record.is_running() && change(record);
        match self.records.update(id, Some(found), change).await? {
            Updated::Stored(stored) => {
                if !stored.record.is_running() {
                    tracing::info!("a task has failed, since its process has stopped");
                }
                self.tell(id, &stored);
                Ok(stored)
            }
            Updated::Unchanged(found) => Ok(found),
            Updated::Nothing | Updated::OtherVersion | Updated::Full => {
                Err("the record of a task whose process has stopped cannot be changed".into())
            }
        }
    }

    /// Runs a released task here; `permit` lets other looks of this process know that it does.
    async fn run_again(
        self: &Arc<Self>,
        server: &Server,
        permit: Arc<TaskPermit>,
        found: Versioned<StoredTask>,
        entry: Arc<ToolEntry>,
    ) -> Result<Versioned<StoredTask>, StoreError> {
        let id = permit.task.id.clone();
        self.ensure_lease().await?;
        // first, so that the task is found if this process stops, or the store does not answer
        self.list(&id).await?;
        let process = self.store.process();
        let take = |record: &mut StoredTask| {
            let is_free = record.released.take().is_some();
            if is_free {
                record.runner = process.clone();
                record.changed();
            }
            is_free
        };
        let taken = self.change_lost(&id, found, take).await?;
        if taken.record.runner == *process && taken.record.is_running() {
            tracing::info!(tool = entry.name(), "a task is run again, since its process has stopped");
            // of a change since the record was taken, this process was told before it knew the task
            permit.task.reload();
            permit.task.inherit(&taken.record);
            spawn(super::continuation::run_again(server, permit, entry, taken.clone()));
        } else {
            self.unlist(&id);
        }
        Ok(taken)
    }

    /// Looks after what no client may look at, as long as the server is there.
    pub(super) async fn look_after(tasks: Weak<Self>) {
        let mut refreshed = Instant::now();
        loop {
            let Some(lease) = tasks.upgrade().map(|tasks| tasks.options.lease) else { return };
            sleep(lease / LOOKS).await;
            let Some(tasks) = tasks.upgrade() else { return };
            let is_due = refreshed.elapsed() > lease * REFRESH;
            if is_due {
                refreshed = Instant::now();
            }
            if !tasks.is_stopping.load(Ordering::Relaxed)
                && let Err(error) = tasks.look_around(is_due).await
            {
                tracing::debug!(%error, "the tasks of other processes cannot be looked at");
            }
        }
    }

    async fn look_around(self: &Arc<Self>, is_due: bool) -> Result<(), StoreError> {
        self.look_at_watched(is_due).await;
        if !self.may_restart.load(Ordering::Relaxed) {
            return Ok(());
        }
        // what this process has released, or has taken without an answer of the store
        let left: Vec<_> = {
            let (presence, running) = (self.presence.lock(), self.running.lock());
            presence.ids.iter().filter(|id| !running.contains_key(*id)).cloned().collect()
        };
        let process = self.store.process();
        for id in left {
            if self.settle(&id, process).await? {
                let is_running = self.running.lock().contains_key(&id);
                if !is_running {
                    self.unlist(&id);
                }
            }
        }
        let Some(Versioned { record: mut list, version }) = self.lists.get(PROCESSES).await? else {
            return Ok(());
        };
        let (before, after): (Vec<_>, Vec<_>) =
            list.ids.iter().filter(|other| *other != process).cloned().partition(|other| other < process);
        let (mut there, mut gone) = (0, Vec::new());
        for other in after.into_iter().chain(before) {
            if self.leases.is_held(&other).await? {
                there += 1;
                if there == NEIGHBOURS {
                    break;
                }
                continue;
            }
            let (ids, mut is_settled) = match self.lists.find(&other).await? {
                Found::Value(Versioned { record, .. }) => (record.ids, true),
                Found::Nothing => (BTreeSet::new(), true),
                Found::OtherVersion => (BTreeSet::new(), false),
            };
            for id in ids {
                is_settled &= self.settle(&id, &other).await?;
            }
            if is_settled {
                gone.push(other);
            }
        }
        if !gone.is_empty() {
            list.ids.retain(|id| !gone.contains(id));
            // not if it has changed: a process may be back, and lists itself again
            let _written = self.lists.put(PROCESSES, &list, Condition::Version(version)).await?;
        }
        Ok(())
    }

    /// Looks at a task that a process had; whether that has it no more.
    async fn settle(self: &Arc<Self>, id: &Arc<str>, process: &Arc<str>) -> Result<bool, StoreError> {
        let has = |record: &StoredTask| record.is_running() && record.runner == *process;
        match self.records.find(id).await? {
            Found::Nothing => Ok(true),
            // it stays listed, for a process that can read it
            Found::OtherVersion => Ok(false),
            Found::Value(found) if !has(&found.record) => Ok(true),
            Found::Value(found) => {
                let found = self.look_at(id, found).await?;
                Ok(!has(&found.record) || self.running.lock().contains_key(id))
            }
        }
    }
}

/// The tool whose function is to run again.
fn find_tool(server: &Server, call: &StoredCall) -> Result<Arc<ToolEntry>, Refusal> {
    let caller = call.caller.as_ref().map(StoredPrincipal::principal);
    if caller.as_ref().is_some_and(|caller| caller.has_expired()) {
        return Err(Refusal::Ever("and the authentication of its caller has expired since"));
    }
    let rules = call.has_rules.then(|| server.access_rules().clone());
    let access = Access { caller: caller.as_ref(), rules: rules.as_deref() };
    let registry = server.registry();
    match registry.tools.find(&call.tool, access) {
        Ok(entry) if entry.spec.restarts_task => Ok(entry.clone()),
        _ => Err(Refusal::Here),
    }
}

#[cfg(all(test, feature = "shared"))]
mod tests {
    use super::*;
    use crate::core::{
        changes::Hub,
        crypto::{Key, KeyRing, test_key},
        store::{Memory, SealedStore, Table, Write},
    };

    #[tokio::test]
    async fn a_task_of_another_version_stays_listed_for_a_process_that_can_read_it_and_the_log_says_so() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let other = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        other.become_other_version();
        let this = SealedStore::shared(Arc::new(memory), &keys, "test");
        let tasks = Tasks::new(super::super::TaskOptions::new(), &this, Hub::default());
        let table = Table::new("tasks", 10_000, 64 << 20, 50);
        let (known, unknown, gone) = ("known".into(), "unknown".into(), "gone".into());
        for (store, bytes) in [(&other, &b"{}"[..]), (&this, b"{\"state\":\"new\"}")] {
            let expires_in = Duration::from_secs(60);
            let write = Write { bytes, owner: "ada", expires_in, condition: Condition::Always };
            store.put(&table, "known", write).await.unwrap();
            assert!(tasks.records.get("known").await.unwrap().is_none(), "clients do not see it");
            assert!(this.has_logged_other_version());
            assert!(!tasks.settle(&known, &gone).await.unwrap());
            assert!(tasks.settle(&unknown, &gone).await.unwrap());
        }
    }
}
