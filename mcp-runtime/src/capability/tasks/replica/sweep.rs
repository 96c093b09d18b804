//! The tasks of a process that has stopped: each is run again by one other process, if its tool has
//! `restart` (the rules: `restart_errors` in `capability/tasks/continuation.rs`) and that process has the tool and room, or is
//! `failed`. Each process looks after the next two that are there in the list of them all, and after those
//! between. One that is missing is waited for, for half a lease in which the store was there all the time, since it may be
//! the store that was away. After that, it may take some seconds until the others have reached it again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{FoundTask, Replicas, STOPPED, StoredCall, StoredTask, Tasks, lease::Presence};
use crate::core::{
    admission::Owner,
    connection::{Access, StoredPrincipal},
    jsonrpc::ProtocolError,
    server::{Entry as _, Server, WeakServer},
    spawn::spawn,
    store::{Condition, StoreError, Written},
    tool::ToolEntry,
};

/// The number of looks at the others during a lease.
const LOOKS: u32 = 8;
/// How many others are looked after.
const NEIGHBOURS: usize = 2;
/// How many processes may stop while they run one task: what ends them may be the task.
const MAX_LOSSES: u32 = 3;
/// How much longer the others are waited for after this process has reached the store, for the first time or again: up to
/// 5 seconds pass between two attempts to connect to Redis, an attempt takes up to one, and then they renew their leases.
const RETURN: Duration = Duration::from_secs(8);
/// Leases after which what clients listen to is read again.
const REFRESH: u32 = 3;

/// The observations of the others so far.
#[derive(Debug, Default)]
struct Watch {
    /// Since when processes are missing.
    missing: BTreeMap<Arc<str>, Instant>,
    /// Since when tasks wait for a process that can run them again.
    waiting: BTreeMap<Arc<str>, Instant>,
    looked: Option<Instant>,
    /// Since when the store is there; absent while it is not.
    reached: Option<Instant>,
}

/// The outcome of taking over a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orphan {
    Settled,
    /// Another process may run it again.
    Waits,
}

/// Why a call cannot be run again here.
enum Refusal {
    /// It cannot be run by any process.
    Ever(String),
    /// Another may have the tool, or room for it.
    Here,
}

impl Tasks {
    /// Looks after other processes, as long as the server is there.
    pub(super) async fn sweep(tasks: Weak<Self>, server: WeakServer, closed: CancellationToken) {
        let (mut watch, mut refreshed) = (Watch::default(), Instant::now());
        loop {
            let Some(lease) = tasks.upgrade().and_then(|tasks| Some(tasks.replicas.as_ref()?.lease)) else {
                return;
            };
            tokio::select! {
                () = sleep(lease / LOOKS) => {}
                () = closed.cancelled() => return,
            }
            let (Some(tasks), Some(server)) = (tasks.upgrade(), server.upgrade()) else { return };
            let Some(replicas) = &tasks.replicas else { return };
            if watch.looked.is_some_and(|looked| looked.elapsed() > lease / 2) {
                // this process was stopped, or the store was slow
                watch.missing.clear();
            }
            watch.looked = Some(Instant::now());
            if replicas.has_left.load(Ordering::Relaxed) {
                // it is about to end
                continue;
            }
            if let Err(error) = tasks.look(replicas, &server, &mut watch).await {
                tracing::debug!(%error, "the processes that run tasks cannot be looked at");
                watch.missing.clear();
            }
            if refreshed.elapsed() > lease * REFRESH {
                refreshed = Instant::now();
                replicas.refresh_all().await;
            }
        }
    }

    async fn look(
        self: &Arc<Self>,
        replicas: &Replicas,
        server: &Server,
        watch: &mut Watch,
    ) -> Result<(), StoreError> {
        // that the store is away is seen here: what fails later may be changed by many at once
        let listed = replicas.listed_processes().await.inspect_err(|_| watch.reached = None)?;
        watch.reached.get_or_insert_with(Instant::now);
        if !listed.contains(&replicas.process) {
            replicas.forget_listing();
        }
        if replicas.has_returned.load(Ordering::Relaxed) {
            let own = &replicas.process;
            let ids = replicas.tasks_of(own).await?;
            let running: BTreeSet<_> = self.running.lock().keys().cloned().collect();
            let left: BTreeSet<_> = ids.difference(&running).cloned().collect();
            replicas.has_returned.store(false, Ordering::Relaxed);
            let settled = self.settle_all(replicas, server, watch, own, left.clone()).await;
            if !matches!(settled, Ok(true)) {
                replicas.has_returned.store(true, Ordering::Relaxed);
            }
            if settled? {
                let running = self.running.lock();
                left.iter().filter(|id| !running.contains_key(*id)).for_each(|id| replicas.unlist_task(id));
            }
        }
        let unlisted = {
            let mut known = replicas.listed.lock();
            known.listed.clone_from(&listed);
            known.unlisted.retain(|process, _| !listed.contains(process));
            known.unlisted.clone()
        };
        let (before, after): (Vec<_>, Vec<_>) = listed
            .iter()
            .filter(|process| **process != replicas.process)
            .partition(|process| **process < replicas.process);
        let (mut there, mut seen) = (0, BTreeSet::new());
        for process in after.into_iter().chain(before) {
            seen.insert(process.clone());
            match replicas.presence(process).await? {
                Presence::Running => {
                    watch.missing.remove(process);
                    there += 1;
                    if there == NEIGHBOURS {
                        break;
                    }
                    continue;
                }
                Presence::Missing if !watch.is_gone(process, replicas.lease) => continue,
                Presence::Missing | Presence::Left => {}
            }
            let ids = replicas.tasks_of(process).await?;
            if self.settle_all(replicas, server, watch, process, ids).await? {
                replicas.remove_process(process).await?;
                watch.missing.remove(process);
            }
        }
        for (process, ids) in unlisted {
            seen.insert(process.clone());
            match replicas.presence(&process).await? {
                Presence::Running => {
                    watch.missing.remove(&process);
                }
                Presence::Missing if !watch.is_gone(&process, replicas.lease) => continue,
                Presence::Missing | Presence::Left => {
                    if !self.settle_all(replicas, server, watch, &process, ids).await? {
                        continue;
                    }
                    watch.missing.remove(&process);
                }
            }
            replicas.listed.lock().unlisted.remove(&process);
        }
        watch.missing.retain(|process, _| seen.contains(process));
        watch.waiting.retain(|_, since| since.elapsed() < replicas.lease * 2);
        Ok(())
    }

    /// Runs the tasks of a process that is gone again, or ends them; whether none is left.
    async fn settle_all(
        self: &Arc<Self>,
        replicas: &Replicas,
        server: &Server,
        watch: &mut Watch,
        process: &Arc<str>,
        ids: BTreeSet<Arc<str>>,
    ) -> Result<bool, StoreError> {
        let mut all_settled = true;
        for id in ids {
            let (record, version) = match replicas.look_up(&id).await? {
                FoundTask::Record(record, version) => (*record, version),
                FoundTask::Nothing => continue,
                FoundTask::OtherVersion => {
                    // it stays listed, for a process that can read it
                    all_settled = false;
                    continue;
                }
            };
            if !record.is_running() || record.runner != *process {
                continue;
            }
            let settled = self.settle_one(replicas, server, watch, &id, record, version).await?;
            all_settled &= settled == Orphan::Settled;
        }
        Ok(all_settled)
    }

    async fn settle_one(
        self: &Arc<Self>,
        replicas: &Replicas,
        server: &Server,
        watch: &mut Watch,
        id: &Arc<str>,
        record: StoredTask,
        version: u64,
    ) -> Result<Orphan, StoreError> {
        let Some(call) = record.restart.clone() else {
            return replicas.fail(id, record, version, STOPPED.to_owned()).await;
        };
        let refusal = match find_tool(server, &call) {
            Ok(entry) => match self.restart(replicas, server, id, record.clone(), version, entry).await? {
                Some(settled) => return Ok(settled),
                None => Refusal::Here,
            },
            Err(refusal) => refusal,
        };
        match refusal {
            Refusal::Ever(why) => replicas.fail(id, record, version, format!("{STOPPED}, {why}")).await,
            Refusal::Here => {
                let since = *watch.waiting.entry(id.clone()).or_insert_with(Instant::now);
                if since.elapsed() < replicas.lease / LOOKS {
                    return Ok(Orphan::Waits);
                }
                let why = format!("{STOPPED}, and no other can run it again");
                replicas.fail(id, record, version, why).await
            }
        }
    }

    /// Runs a task here; `None` if there is not enough room for it.
    async fn restart(
        self: &Arc<Self>,
        replicas: &Replicas,
        server: &Server,
        id: &Arc<str>,
        record: StoredTask,
        version: u64,
        entry: Arc<ToolEntry>,
    ) -> Result<Option<Orphan>, StoreError> {
        let sharer = Owner::from_text(record.share.clone());
        let Some(permit) = self.permits.try_acquire(&sharer, 1) else { return Ok(None) };
        let Some(copy) = replicas.take_record(self, id, record, version).await? else {
            // another process has taken it
            return Ok(Some(Orphan::Settled));
        };
        tracing::info!(tool = entry.name(), "a task is run again, since its process has stopped");
        let permit = self.adopt(id, &copy.record, permit);
        // of a change since the record was taken over, this process was told before it knew the task
        permit.task.reload();
        replicas.tell_watchers(id, &copy.record, copy.version);
        spawn(super::super::continuation::run_again(server, permit, entry, copy));
        Ok(Some(Orphan::Settled))
    }
}

impl Watch {
    /// Whether a process is missing for so long that it is gone.
    fn is_gone(&mut self, process: &Arc<str>, lease: Duration) -> bool {
        let since = *self.missing.entry(process.clone()).or_insert_with(Instant::now);
        let has_had_time = self.reached.is_some_and(|reached| reached.elapsed() >= lease / 2 + RETURN);
        since.elapsed() >= lease / 2 && has_had_time
    }
}

/// The tool whose function is to run again.
fn find_tool(server: &Server, call: &StoredCall) -> Result<Arc<ToolEntry>, Refusal> {
    if call.losses >= MAX_LOSSES {
        return Err(Refusal::Ever(format!("as {} before it", call.losses)));
    }
    let caller = call.caller.as_ref().map(StoredPrincipal::principal);
    if caller.as_ref().is_some_and(|caller| caller.has_expired()) {
        return Err(Refusal::Ever("and the authentication of its caller has expired since".to_owned()));
    }
    let rules = call.has_rules.then(|| server.access_rules().clone());
    let access = Access { caller: caller.as_ref(), rules: rules.as_deref() };
    let registry = server.registry();
    match registry.tools.find(&call.tool, access) {
        Ok(entry) if entry.spec.restarts_task => Ok(entry.clone()),
        _ => Err(Refusal::Here),
    }
}

impl Replicas {
    /// Ends a task whose process has stopped.
    async fn fail(
        &self,
        id: &Arc<str>,
        mut record: StoredTask,
        version: u64,
        why: String,
    ) -> Result<Orphan, StoreError> {
        record.fail(&ProtocolError::internal(why));
        let condition = Condition::Version(version);
        match self.write(id, &record, condition).await? {
            Written::Stored => {
                tracing::info!("a task has failed, since its process has stopped");
                self.tell_watchers(id, &record, condition.next_version());
                Ok(Orphan::Settled)
            }
            // it has changed, and is looked at again
            Written::Conflict => Ok(Orphan::Waits),
            Written::Full => Ok(Orphan::Settled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        changes::Hub,
        crypto::{Key, KeyRing, test_key},
        store::{Memory, OtherVersion, SealedStore, Write},
    };

    #[tokio::test]
    async fn a_task_of_another_version_stays_listed_for_a_process_that_can_read_it_and_the_log_says_so() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let other = SealedStore::shared(Arc::new(OtherVersion::new(&memory, &keys)), &keys, "test");
        let this = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        let options = super::super::TaskOptions::default();
        let replicas = Replicas::new(&this, &options, 50, Hub::default()).unwrap();
        let tasks = Tasks::new(options, None, 50, Hub::default());
        let server = Server::builder("test", "1").build().unwrap();
        for (store, bytes) in [(&other, &b"{}"[..]), (&this, b"{\"state\":\"new\"}")] {
            let expires_in = Duration::from_secs(60);
            let write = Write { bytes, owner: "ada", expires_in, condition: Condition::Always };
            store.put(&replicas.tasks, "known", write).await.unwrap();
            assert!(replicas.read("known").await.unwrap().is_none(), "clients do not see it");
            assert!(this.has_logged_other_version());
            let mut watch = Watch::default();
            let mut settled = async |id: &str| {
                let ids = BTreeSet::from([id.into()]);
                tasks.settle_all(&replicas, &server, &mut watch, &"gone".into(), ids).await.unwrap()
            };
            assert!(!settled("known").await);
            assert!(settled("unknown").await);
        }
    }
}
