//! Tasks that clients listen to here, wherever they run: each has the newest record that this process has seen, and is
//! listed in the record, so that a process which changes it tells this one. A working task that someone listens to does not
//! expire.

use std::sync::Arc;

use super::{Replicas, StoredTask, TRIES, unreachable};
use crate::core::{
    changes::{Change, Filter, Subject, SubjectChange},
    dispatch::Reply,
    jsonrpc::Object,
    store::{Condition, Written},
    sync::Mutex,
};

/// The processes that one record lists.
const MAX_WATCHERS: usize = 64;

/// A task that clients listen to.
#[derive(Debug)]
pub(super) struct WatchedTask {
    id: Arc<str>,
    /// The newest record, and its version.
    newest: Mutex<(StoredTask, u64)>,
    /// Every subscribed filter holds a clone.
    subscribed: Arc<()>,
}

impl Subject for WatchedTask {
    fn id(&self) -> &str {
        &self.id
    }

    fn method(&self) -> &'static str {
        "notifications/tasks"
    }

    fn write(&self, task: &mut Object<'_>) {
        self.newest.lock().0.write(&self.id, task);
    }
}

/// Whether filters are subscribed to a task, or are about to be.
fn is_used(task: &Arc<WatchedTask>) -> bool {
    Arc::strong_count(&task.subscribed) > 1 || Arc::strong_count(task) > 1
}

impl Replicas {
    /// Subscribes a filter to a task; `false` if it does not exist, or has ended.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn subscribe(
        &self,
        id: &str,
        owner: Option<&str>,
        filter: &Filter,
    ) -> Result<bool, Reply> {
        for _ in 0..TRIES {
            let Some((mut record, version)) = self.find(id, owner).await? else { return Ok(false) };
            if !record.is_running() {
                return Ok(false);
            }
            let id: Arc<str> = id.into();
            let watched = self.watch(&id, &record, version);
            // in this order, so that no change is lost between the two
            if !filter.add_subject(id.clone(), watched.subscribed.clone()) {
                return Ok(false);
            }
            if record.watchers.contains(&self.process) {
                // it may have changed since it was read, of which this process was told then
                self.refresh(&id).await;
                return Ok(true);
            }
            record.watchers.push(self.process.clone());
            let fits = record.watchers.len() <= MAX_WATCHERS;
            let written = match fits {
                true => self.write(&id, &record, Condition::Version(version)).await,
                false => Ok(Written::Full),
            };
            match written {
                Ok(Written::Stored) => {
                    self.remember(&id, version + 1);
                    return Ok(true);
                }
                Ok(Written::Conflict) => filter.remove_subject(&id),
                Ok(Written::Full) => {
                    filter.remove_subject(&id);
                    return Ok(false);
                }
                Err(error) => {
                    filter.remove_subject(&id);
                    return Err(unreachable(&error));
                }
            }
        }
        Ok(false)
    }

    fn watch(&self, id: &Arc<str>, record: &StoredTask, version: u64) -> Arc<WatchedTask> {
        let mut watched = self.watched.lock();
        watched.retain(|_, task| is_used(task));
        let made = || {
            let newest = Mutex::new((record.clone(), version));
            Arc::new(WatchedTask { id: id.clone(), newest, subscribed: Arc::default() })
        };
        watched.entry(id.clone()).or_insert_with(made).clone()
    }

    /// Notes a version with nothing new for clients.
    fn remember(&self, id: &str, version: u64) {
        if let Some(watched) = self.watched.lock().get(id) {
            let mut newest = watched.newest.lock();
            newest.1 = newest.1.max(version);
        }
    }

    /// Tells those who listen to a task of its newest record.
    pub(super) fn show(&self, id: &Arc<str>, record: &StoredTask, version: u64) {
        let mut all = self.watched.lock();
        let Some(watched) = all.get(id).cloned() else { return };
        if !record.is_running() {
            all.remove(id);
        }
        drop(all);
        {
            let mut newest = watched.newest.lock();
            let is_new = version > newest.1 || record.updated > newest.0.updated;
            if !is_new {
                return;
            }
            let is_same = record.updated == newest.0.updated && record.is_running();
            *newest = (record.clone(), version);
            if is_same {
                // another subscriber, or a longer time to live
                return;
            }
        }
        self.hub.publish(Change::Subject(SubjectChange(watched)));
    }

    /// Reads a task again that clients listen to.
    pub(super) async fn refresh(&self, id: &Arc<str>) {
        if !self.watched.lock().contains_key(id) {
            return;
        }
        match self.read(id).await {
            Ok(Some((record, version))) => self.show(id, &record, version),
            // it has expired, or its store has lost it
            Ok(None) => {
                self.watched.lock().remove(id);
            }
            // it is read again later
            Err(error) => tracing::debug!(%error, "a task that clients listen to cannot be read"),
        }
    }

    /// Reads all tasks again that clients listen to, and keeps those from expiring that work.
    pub(super) async fn refresh_all(&self) {
        let ids: Vec<Arc<str>> = {
            let mut watched = self.watched.lock();
            watched.retain(|_, task| is_used(task));
            watched.keys().cloned().collect()
        };
        for id in ids {
            let Ok(Some((mut record, version))) = self.read(&id).await else { continue };
            self.show(&id, &record, version);
            if record.is_running() {
                self.note_runner(&id, &record);
                if !record.is_waiting() {
                    self.extend(&id, &mut record, version).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Tasks, *};
    use crate::core::{
        admission::Owner,
        changes::{Hub, ListChanges},
        store::SealedStore,
    };

    #[tokio::test]
    async fn a_task_that_is_about_to_be_subscribed_to_stays_known_and_one_without_a_subscriber_does_not() {
        let (hub, options) = (Hub::default(), super::super::TaskOptions::default());
        let replicas = Replicas::new(&SealedStore::in_memory(), &options, 50, hub.clone()).unwrap();
        let tasks = Tasks::new(options, None, 50, hub.clone());
        let permit = tasks.start(None, Owner::local()).unwrap();
        let record = permit.task.new_record("process".into());
        let is_known = || replicas.watched.lock().contains_key(&permit.task.id);
        let watched = replicas.watch(&permit.task.id, &record, 1);
        replicas.refresh_all().await;
        assert!(is_known());
        let filter = hub.filter(ListChanges::default(), &Owner::local());
        assert!(filter.add_subject(permit.task.id.clone(), watched.subscribed.clone()));
        drop(watched);
        replicas.refresh_all().await;
        assert!(is_known());
        drop(filter);
        replicas.refresh_all().await;
        assert!(!is_known());
    }
}
