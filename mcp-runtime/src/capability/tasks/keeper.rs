//! Keeps the record of a task up to date whose function runs here, and the task up to date with what others change in its
//! record. A process that finds that its task is another's drops the function, and writes nothing. While the store cannot be
//! reached, the result of a function is kept for the task's time to live.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::sleep;

use super::{RunningTask, TaskPermit, Tasks, record::StoredTask, running_task::TaskSummary};
use crate::core::store::{Condition, StoreError, Updated, Versioned, Written, log_store_error};

/// The first and the longest time after which a write is tried again that has failed.
const RETRIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// Leases after which a record is read again whose changes were not told.
const RECHECK: u32 = 3;

impl Tasks {
    /// Puts the record of a new task, which clients find from now on.
    ///
    /// # Errors
    /// The store is full, or cannot be reached.
    pub(super) async fn create_record(
        &self,
        task: &RunningTask,
    ) -> Result<Versioned<StoredTask>, StoreError> {
        self.is_stopping.store(false, Ordering::Relaxed);
        self.ensure_lease().await?;
        let record = task.record();
        let may_restart = record.restart.is_some();
        let list = async { if may_restart { self.list(&task.id).await } else { Ok(()) } };
        let (listed, written) = tokio::join!(list, self.records.put(&task.id, &record, Condition::Absent));
        let outcome = match (listed, written) {
            (Ok(()), Ok(Written::Stored)) => return Ok(Versioned { record, version: 1 }),
            (Err(error), _) | (_, Err(error)) => error,
            (_, Ok(_)) => "the store is full of tasks".into(),
        };
        self.unlist(&task.id);
        if let Err(error) = self.records.remove(&task.id).await {
            tracing::debug!(%error, "a task that was not created cannot be removed");
        }
        Err(outcome)
    }

    /// Keeps a task and its record up to date with each other, until it has ended.
    pub(super) async fn keep(&self, task: &RunningTask, copy: Versioned<StoredTask>) {
        let [first, longest] = RETRIES;
        let (mut copy, mut retry) = (Some(copy), first);
        loop {
            tokio::select! {
                () = task.wait_for_change() => {}
                // a message may have been lost
                () = sleep(self.options.lease * RECHECK), if self.store.is_shared() => task.reload(),
            }
            while let Err(error) = self.sync(task, &mut copy).await {
                if task.has_ended() && task.is_due() {
                    let what = "a task's result is lost: it could not be saved in its time to live";
                    log_store_error(&error, what);
                    return;
                }
                log_store_error(&error, "a task cannot be saved yet");
                // whether the last change was written is not known
                task.reload();
                sleep(retry).await;
                retry = (retry * 2).min(longest);
            }
            retry = first;
            if task.is_settled() {
                // one that was given up stays listed until another process runs it
                if task.record().released.is_none() {
                    self.unlist(&task.id);
                }
                return;
            }
        }
    }

    /// Brings the task and its record up to date.
    async fn sync(
        &self,
        task: &RunningTask,
        copy: &mut Option<Versioned<StoredTask>>,
    ) -> Result<(), StoreError> {
        // without a lease, the task may be another's
        if task.take_reload() || !self.has_lease() {
            *copy = None;
        }
        let is_read = copy.is_none();
        if is_read && self.is_watched(&task.id) && !task.is_waiting() {
            // one that only waits for its client waits in vain if that only listens
            task.extend();
        }
        let merge = |record: &mut StoredTask| task.merge(record, self.store.process());
        let updated = match self.records.update(&task.id, copy.take(), merge).await? {
            Updated::Nothing => self.put_again(task).await?,
            updated => updated,
        };
        match updated {
            Updated::Stored(stored) => {
                task.confirm();
                self.tell(&task.id, &stored);
                *copy = Some(stored);
            }
            Updated::Unchanged(found) => {
                if !found.record.is_running() {
                    // perhaps the reply to the last write was lost
                    self.tell(&task.id, &found);
                }
                *copy = Some(found);
            }
            Updated::OtherVersion => task.lose(TaskSummary::LOST),
            Updated::Full if task.give_way() => {}
            Updated::Full => return Err("the store is full".into()),
            Updated::Nothing => {
                tracing::info!("a task of this process has expired while its record could not be kept");
                task.lose(TaskSummary::LOST);
            }
        }
        if is_read {
            task.set_reloaded();
        }
        Ok(())
    }

    /// Puts a record again that the store has lost: another process that takes it over would have kept it for longer.
    async fn put_again(&self, task: &RunningTask) -> Result<Updated<StoredTask>, StoreError> {
        // as others would have it
        let mut record = StoredTask { end: None, released: None, ..task.record() };
        if record.left().is_zero() {
            return Ok(Updated::Nothing);
        }
        // first, since the store may have lost the lease as well
        self.renew_lease().await?;
        task.merge(&mut record, self.store.process());
        Ok(match self.records.put(&task.id, &record, Condition::Absent).await? {
            Written::Stored => Updated::Stored(Versioned { record, version: 1 }),
            Written::Conflict => return Err("the record of a task has just changed".into()),
            Written::Full => Updated::Full,
        })
    }
}

impl TaskPermit {
    /// Keeps the task and its record up to date with each other, until it has ended.
    pub(super) async fn keep_record(&self, copy: Versioned<StoredTask>) {
        self.tasks.keep(&self.task, copy).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{
        super::{
            TaskOptions,
            record::{StoredEnd, raw_json},
        },
        *,
    };
    use crate::core::{
        admission::Owner,
        changes::Hub,
        jsonrpc::ProtocolError,
        observer::EndOutcome,
        store::{Found, SealedStore, Table, Write},
    };

    /// Tasks of a store of 4,000 bytes.
    fn narrow(store: &SealedStore) -> Arc<Tasks> {
        let options = TaskOptions { max_kept_bytes: 4000, ..TaskOptions::new() };
        Tasks::new(options, store, Hub::default())
    }

    #[tokio::test]
    async fn a_result_without_room_in_the_store_is_a_failure() {
        let tasks = narrow(&SealedStore::in_memory());
        for (bytes, is_kept) in [(1000, true), (4000, false)] {
            let permit = tasks.start(None, &Owner::local()).unwrap();
            let mut copy = Some(tasks.create_record(&permit.task).await.unwrap());
            let result = StoredEnd::Result(raw_json(format!("\"{}\"", "x".repeat(bytes))));
            permit
                .task
                .end(TaskSummary::new(EndOutcome::Completed, None), |record| record.finish(result, None));
            while !permit.task.is_settled() {
                tasks.sync(&permit.task, &mut copy).await.unwrap();
            }
            let record = tasks.records.get(&permit.task.id).await.unwrap().expect("a record").record;
            match record.end {
                Some(StoredEnd::Result(_)) => assert!(is_kept),
                Some(StoredEnd::Error(error)) => {
                    assert!(!is_kept && error.get().contains("-32603"), "{error}");
                    assert_eq!(record.message.as_deref(), Some("the result could not be saved"));
                }
                _ => panic!("it has ended"),
            }
        }
    }

    #[tokio::test]
    async fn a_failure_without_room_in_the_store_is_saved_once_there_is_room() {
        let store = SealedStore::in_memory();
        let tasks = narrow(&store);
        let permit = tasks.start(None, &Owner::local()).unwrap();
        let mut copy = Some(tasks.create_record(&permit.task).await.unwrap());
        let table = Table::new("tasks", 10_000, 4000, 50);
        let Found::Value(kept) = store.find(&table, &permit.task.id).await.unwrap() else {
            panic!("it has a record");
        };
        let filler = vec![b' '; 4000 - kept.bytes.len() - 2];
        let write = Write {
            bytes: &filler,
            owner: "local",
            expires_in: Duration::from_secs(60),
            condition: Condition::Absent,
        };
        assert_eq!(store.put(&table, "filler", write).await.unwrap(), Written::Stored);
        permit.task.fail(&ProtocolError::internal("broken"));
        assert!(tasks.sync(&permit.task, &mut copy).await.is_err(), "the task is not given up");
        store.remove(&table, "filler").await.unwrap();
        permit.task.reload();
        tasks.sync(&permit.task, &mut copy).await.unwrap();
        assert!(permit.task.is_settled());
        let record = tasks.records.get(&permit.task.id).await.unwrap().expect("a record").record;
        assert!(record.message.is_some_and(|message| message == "broken"));
    }
}
