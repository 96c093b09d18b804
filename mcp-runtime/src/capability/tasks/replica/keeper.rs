//! Keeps the record of a task up to date whose function runs here, and the task up to date with what other processes change
//! in its record. A process that finds that its task is another's drops the function, and writes nothing. While the store
//! cannot be reached, the result of a function is kept for the task's time to live.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::sleep;

use super::{
    super::{
        TaskEnd, TaskPermit,
        running_task::{Filled, RunningTask},
    },
    FoundTask, Replicas, StoredCall, StoredEnd, StoredTask, TRIES, Tasks,
};
use crate::core::{
    jsonrpc::ProtocolError,
    log_limit::log_store_error,
    store::{Condition, StoreError, Written},
};

/// The first and the longest time after which a write is tried again that has failed.
const RETRIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// Leases after which a record is read again whose changes were not told.
const RECHECK: u32 = 3;

/// The record of a task that runs here, as it was last read or written.
#[derive(Debug)]
pub(crate) struct StoredCopy {
    pub(super) record: StoredTask,
    pub(super) version: u64,
    /// How many changes of the task it has.
    pub(super) changes: u64,
}

impl StoredCopy {
    /// The call, if another process may run it again.
    pub(crate) fn call(&self) -> Option<StoredCall> {
        self.record.restart.as_deref().cloned()
    }
}

impl Replicas {
    /// Puts the record of a new task, which other processes find from now on.
    ///
    /// # Errors
    /// The store is full, or cannot be reached.
    pub(crate) async fn create(
        &self,
        tasks: &Tasks,
        task: &RunningTask,
        call: Option<StoredCall>,
    ) -> Result<StoredCopy, StoreError> {
        self.ensure_lease(tasks).await?;
        let mut record = task.new_record(self.process.clone());
        record.restart = call.map(Box::new);
        // with what earlier round trips of the call have brought
        let _running = task.fill(&mut record);
        let (listed, written) =
            tokio::join!(self.list_task(&task.id), self.write(&task.id, &record, Condition::Absent));
        let outcome = match (listed, written) {
            (Ok(()), Ok(Written::Stored)) => Ok(StoredCopy { record, version: 1, changes: 0 }),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (_, Ok(_)) => Err("the store is full of tasks".into()),
        };
        if outcome.is_err() {
            self.unlist_task(&task.id);
            if let Err(error) = self.store.remove(&self.tasks, &task.id).await {
                tracing::debug!(%error, "a task that was not created cannot be removed");
            }
        }
        outcome
    }

    /// Keeps a task and its record up to date with each other, until it has ended.
    async fn keep(&self, task: &RunningTask, mut copy: StoredCopy) {
        let [first, longest] = RETRIES;
        let mut retry = first;
        loop {
            tokio::select! {
                () = task.wait_for_change() => {}
                // a message may have been lost
                () = sleep(self.lease * RECHECK) => task.reload(),
            }
            loop {
                match self.sync(task, &mut copy).await {
                    Ok(true) => return self.unlist_task(&task.id),
                    Ok(false) => break,
                    Err(error) => {
                        if task.has_ended() && task.is_due() {
                            log_store_error(
                                &error,
                                "a task's result is lost: it could not be saved in its time to live",
                            );
                            return self.unlist_task(&task.id);
                        }
                        log_store_error(&error, "a task cannot be saved yet");
                        // whether the last one was written is not known
                        task.reload();
                        sleep(retry).await;
                        retry = (retry * 2).min(longest);
                    }
                }
            }
            retry = first;
        }
    }

    /// Brings the record up to date; `true` if nothing is left to do.
    async fn sync(&self, task: &RunningTask, copy: &mut StoredCopy) -> Result<bool, StoreError> {
        for _ in 0..TRIES {
            let mut condition = Condition::Version(copy.version);
            // without a lease, the task may be another's
            if task.take_reload() || !self.has_lease() {
                match self.look_up(&task.id).await? {
                    FoundTask::Nothing if copy.record.left().is_zero() => {
                        tracing::info!(
                            "a task of this process has expired while its record could not be kept"
                        );
                        task.lose(TaskEnd::Lost);
                        return Ok(true);
                    }
                    // another process that takes it over keeps it for longer than that, so the store has lost it
                    FoundTask::Nothing => condition = Condition::Absent,
                    FoundTask::OtherVersion => {
                        tracing::info!("a task of this process was taken over by one of another version");
                        task.lose(TaskEnd::Lost);
                        return Ok(true);
                    }
                    FoundTask::Record(record, _) if record.runner != self.process => {
                        tracing::info!("a task of this process was taken over by another");
                        task.lose(TaskEnd::Lost);
                        return Ok(true);
                    }
                    FoundTask::Record(record, version) if !record.is_running() || record.is_released => {
                        if !task.has_ended() {
                            let is_cancelled = matches!(record.end, Some(StoredEnd::Cancelled));
                            task.lose(if is_cancelled { TaskEnd::Cancelled } else { TaskEnd::Lost });
                        } else {
                            // the reply to the last write was lost
                            self.tell_watchers(&task.id, &record, version);
                        }
                        return Ok(true);
                    }
                    FoundTask::Record(record, version) => {
                        task.take_changes(&record);
                        copy.record = *record;
                        copy.version = version;
                        condition = Condition::Version(version);
                    }
                }
                task.set_reloaded();
            }
            let mut record = copy.record.clone();
            let filled = task.fill(&mut record);
            match filled {
                Filled::Lost => return Ok(true),
                Filled::Running(changes) if changes == copy.changes && condition != Condition::Absent => {
                    return Ok(false);
                }
                Filled::Expired => record.expires = super::record::now(),
                Filled::Running(_) | Filled::Ended => {}
            }
            match self.write(&task.id, &record, condition).await? {
                Written::Stored => {
                    let version = condition.next_version();
                    self.tell_watchers(&task.id, &record, version);
                    let Filled::Running(changes) = filled else { return Ok(true) };
                    *copy = StoredCopy { record, version, changes };
                    task.confirm(changes);
                    return Ok(false);
                }
                Written::Conflict => task.mark_for_reload(),
                Written::Full => match filled {
                    // its client would never learn of it, and the function would wait for it
                    Filled::Running(_) if asks_more(&record, &copy.record) => {
                        log_store_error(&"the store is full", "a client request of a task cannot be saved");
                        let error = "the client requests of the task could not be saved: the store is full";
                        task.stop(TaskEnd::Failed(ProtocolError::internal(error)));
                    }
                    Filled::Running(changes) => {
                        tracing::debug!("a task's progress has no room in the store");
                        copy.changes = changes;
                        return Ok(false);
                    }
                    // it expires by itself
                    Filled::Expired => return Ok(true),
                    _ if task.replace_result(ProtocolError::internal("the result could not be saved")) => {
                        log_store_error(&"the store is full", "a task's result cannot be saved");
                    }
                    _ => return Err("the store is full".into()),
                },
            }
        }
        Err("the task is changed by many at once".into())
    }
}

/// Whether a record has a client request that another has not.
fn asks_more(record: &StoredTask, than: &StoredTask) -> bool {
    record.requests.iter().any(|request| !than.requests.contains(request))
}

impl TaskPermit {
    /// Keeps a task and its record up to date with each other, until it has ended.
    pub(crate) async fn keep_record(&self, copy: StoredCopy) {
        if let Some(replicas) = &self.tasks.replicas {
            replicas.keep(&self.task, copy).await;
        }
    }
}

impl Replicas {
    /// Takes over the record of a task whose process has stopped.
    pub(super) async fn take_record(
        &self,
        tasks: &Tasks,
        id: &Arc<str>,
        mut record: StoredTask,
        version: u64,
    ) -> Result<Option<StoredCopy>, StoreError> {
        self.ensure_lease(tasks).await?;
        // first, so that the task is found if this process stops
        self.list_task(id).await?;
        let is_clean = std::mem::take(&mut record.is_released);
        record.runner = self.process.clone();
        record.changed();
        if let Some(call) = record.restart.as_mut().filter(|_| !is_clean) {
            call.losses += 1;
        }
        let condition = Condition::Version(version);
        match self.write(id, &record, condition).await {
            Ok(Written::Stored) => {
                Ok(Some(StoredCopy { record, version: condition.next_version(), changes: 0 }))
            }
            Ok(_) => {
                self.unlist_task(id);
                Ok(None)
            }
            Err(error) => {
                // it may be this process's all the same: its own list is looked at again
                self.has_returned.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        admission::Owner,
        changes::Hub,
        store::{SealedStore, Write},
    };

    #[tokio::test]
    async fn a_failure_without_room_in_the_store_is_saved_once_there_is_room() {
        let store = SealedStore::in_memory();
        let options = super::super::TaskOptions { max_kept_bytes: 4000, ..Default::default() };
        let replicas = Replicas::new(&store, &options, 50, Hub::default()).unwrap();
        let tasks = Tasks::new(options, Some(replicas), 50, Hub::default());
        let replicas = tasks.replicas.as_ref().unwrap();
        let permit = tasks.start(None, Owner::local()).unwrap();
        let mut copy = replicas.create(&tasks, &permit.task, None).await.unwrap();
        let kept = store.get(&replicas.tasks, &permit.task.id).await.unwrap().expect("a record").bytes.len();
        let filler = vec![b' '; 4000 - kept];
        let write = Write {
            bytes: &filler,
            owner: "local",
            expires_in: Duration::from_secs(60),
            condition: Condition::Absent,
        };
        assert_eq!(store.put(&replicas.tasks, "filler", write).await.unwrap(), Written::Stored);
        permit.task.end(TaskEnd::Failed(ProtocolError::internal("broken")));
        assert!(replicas.sync(&permit.task, &mut copy).await.is_err(), "the task is not given up");
        store.remove(&replicas.tasks, "filler").await.unwrap();
        assert!(replicas.sync(&permit.task, &mut copy).await.unwrap());
        let (record, _) = replicas.read(&permit.task.id).await.unwrap().expect("a record");
        assert!(matches!(record.end, Some(StoredEnd::Error(_))));
    }
}
