//! Tasks that clients listen to here, wherever they run: each has the newest record that this process has seen. A process
//! that changes a task to which someone listens tells the others. A working task that someone listens to does not expire.

use std::{collections::HashMap, sync::Arc};

use super::{StoredTask, Tasks, unreachable};
use crate::core::{
    changes::{Change, Filter, SubjectChange},
    dispatch::Reply,
    store::{Listener, Received, Updated, Versioned},
    sync::Mutex,
};

/// The topic of tasks that have changed.
pub(super) const TOPIC: &str = "tasks";

/// A task that clients listen to.
pub(super) struct WatchedTask {
    id: Arc<str>,
    newest: Mutex<Versioned<StoredTask>>,
    /// Every subscribed filter holds a clone.
    subscribed: Arc<()>,
}

/// Whether filters are subscribed to a task, or are about to be.
fn is_used(task: &Arc<WatchedTask>) -> bool {
    Arc::strong_count(&task.subscribed) > 1 || Arc::strong_count(task) > 1
}

impl Tasks {
    /// Subscribes a filter to a task; `false` if it does not exist, or has ended.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        id: &str,
        owner: Option<&str>,
        filter: &Filter,
    ) -> Result<bool, Reply> {
        let id: Arc<str> = id.into();
        let found = self.find(&id, owner).await?.filter(|found| found.record.is_running());
        let Some(found) = found else { return Ok(false) };
        let watched = self.watch(&id, found);
        // in this order, so that no change is lost between the two
        if !filter.add_subject(id.clone(), watched.subscribed.clone()) {
            return Ok(false);
        }
        let mark =
            |record: &mut StoredTask| record.is_running() && !std::mem::replace(&mut record.is_watched, true);
        let marked = self.records.update(&id, None, mark).await.map_err(|error| unreachable(&error));
        let is_subscribed = match marked {
            Ok(Updated::Stored(newest) | Updated::Unchanged(newest)) => {
                self.show(&id, &newest);
                Ok(newest.record.is_running())
            }
            Ok(Updated::Nothing | Updated::OtherVersion | Updated::Full) => Ok(false),
            Err(reply) => Err(reply),
        };
        if !matches!(is_subscribed, Ok(true)) {
            filter.remove_subject(&id);
        }
        is_subscribed
    }

    pub(super) fn watch(&self, id: &Arc<str>, found: Versioned<StoredTask>) -> Arc<WatchedTask> {
        let mut watched = self.watched.lock();
        watched.retain(|_, task| is_used(task));
        let made = || {
            Arc::new(WatchedTask { id: id.clone(), newest: Mutex::new(found), subscribed: Arc::default() })
        };
        watched.entry(id.clone()).or_insert_with(made).clone()
    }

    pub(super) fn is_watched(&self, id: &str) -> bool {
        self.watched.lock().get(id).is_some_and(is_used)
    }

    /// Tells those of a change who have to know of it.
    pub(super) fn tell(&self, id: &Arc<str>, newest: &Versioned<StoredTask>) {
        let runs_here = newest.record.runner == *self.store.process();
        if !runs_here || newest.record.is_watched {
            // what is not told is found by the record, later
            let _fits = self.store.send(TOPIC, id);
        }
        self.show(id, newest);
    }

    /// Tells those who listen to a task here of its newest record.
    fn show(&self, id: &Arc<str>, newest: &Versioned<StoredTask>) {
        let mut all = self.watched.lock();
        let Some(watched) = all.get(id).cloned() else { return };
        if !newest.record.is_running() {
            all.remove(id);
        }
        drop(all);
        {
            let mut known = watched.newest.lock();
            // a store that has lost the record counts its versions anew
            if newest.version <= known.version && newest.record.updated <= known.record.updated {
                return;
            }
            // another subscriber, or a longer time to live
            let is_same = newest.record.updated == known.record.updated && newest.record.is_running();
            *known = newest.clone();
            if is_same {
                return;
            }
        }
        self.hub.publish(Change::Subject(SubjectChange {
            id: watched.id.clone(),
            method: "notifications/tasks",
            write: Arc::new(move |task| watched.newest.lock().record.write(&watched.id, task)),
        }));
    }

    /// Reads a task again that clients listen to.
    async fn refresh(&self, id: &Arc<str>) {
        if !self.is_watched(id) {
            return;
        }
        match self.records.get(id).await {
            Ok(Some(newest)) => self.show(id, &newest),
            // it has expired, or its store has lost it
            Ok(None) => _ = self.watched.lock().remove(id),
            // it is read again later
            Err(error) => tracing::debug!(%error, "a task that clients listen to cannot be read"),
        }
    }

    fn watched_ids(&self) -> Vec<Arc<str>> {
        let mut watched = self.watched.lock();
        watched.retain(|_, task| is_used(task));
        watched.keys().cloned().collect()
    }

    /// Looks at the tasks that clients listen to: at those whose process has stopped, or at all, which keeps those from
    /// expiring that work.
    pub(super) async fn look_at_watched(self: &Arc<Self>, all: bool) {
        let mut stopped = HashMap::new();
        for id in self.watched_ids() {
            let known = self.watched.lock().get(&id).map(|watched| watched.newest.lock().clone());
            let Some(known) = known else { continue };
            let StoredTask { runner, released, .. } = &known.record;
            let is_lost = match stopped.get(runner) {
                Some(has_stopped) => *has_stopped,
                None => {
                    let has_stopped = self.has_stopped(runner).await.unwrap_or_default();
                    stopped.insert(runner.clone(), has_stopped);
                    has_stopped
                }
            };
            if !all && !is_lost && released.is_none() {
                continue;
            }
            let newest = if all { self.records.get(&id).await } else { Ok(Some(known)) };
            let Ok(Some(newest)) = newest else { continue };
            let Ok(newest) = self.look_at(&id, newest).await else { continue };
            self.show(&id, &newest);
            if all && !newest.record.is_waiting() {
                // a conflict is another change, which extends it as well
                let _extended = self.records.update(&id, Some(newest), StoredTask::extend).await;
            }
        }
    }

    /// Looks at what other processes have changed: tasks that run here, or that clients listen to here.
    pub(super) async fn receive_changes(tasks: std::sync::Weak<Self>, mut listener: Listener) {
        while let Some(received) = listener.next().await {
            let Some(tasks) = tasks.upgrade() else { return };
            let changed = match &received {
                Received::Message(message) => serde_json::from_slice::<Arc<str>>(message).ok(),
                Received::Missed => None,
            };
            if let Some(id) = changed {
                let running = tasks.running.lock().get(&id).cloned();
                if let Some(task) = running {
                    task.reload();
                }
                tasks.refresh(&id).await;
                continue;
            }
            // the store was away, and others wait for the lease
            tasks.running.lock().values().for_each(|task| task.reload());
            let is_idle = tasks.running.lock().is_empty();
            if !is_idle && let Err(error) = tasks.renew_lease().await {
                tracing::debug!(%error, "the lease of this process cannot be renewed");
            }
            tasks.look_at_watched(true).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        admission::Owner,
        changes::{Hub, ListChanges},
        store::SealedStore,
    };

    #[tokio::test]
    async fn a_task_that_is_about_to_be_subscribed_to_stays_known_and_one_without_a_subscriber_does_not() {
        let (hub, store) = (Hub::default(), SealedStore::in_memory());
        let tasks = Tasks::new(super::super::TaskOptions::new(), &store, hub.clone());
        let permit = tasks.start(None, &Owner::local()).unwrap();
        let id = &permit.task.id;
        let watched = tasks.watch(id, Versioned { record: permit.task.record(), version: 1 });
        tasks.look_at_watched(true).await;
        assert!(tasks.is_watched(id));
        let filter = hub.filter(ListChanges::default(), &Owner::local());
        assert!(filter.add_subject(id.clone(), watched.subscribed.clone()));
        drop(watched);
        tasks.look_at_watched(true).await;
        assert!(tasks.is_watched(id));
        drop(filter);
        tasks.look_at_watched(true).await;
        assert!(!tasks.is_watched(id));
    }
}
