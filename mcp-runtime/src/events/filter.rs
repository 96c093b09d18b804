//! The changes that one subscriber gets. The filter of a `subscriptions/listen` stream is fixed; legacy sessions add and
//! remove URIs.

use std::{collections::HashMap, sync::Arc};

use crate::{events::Change, protocol::normalize_uri, sync::RwLock};

/// The lists whose changes a client subscribes to, or a server publishes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

/// The subscriptions of one subscriber.
#[derive(Debug)]
pub(crate) struct Filter {
    lists: ListChanges,
    /// The subscriber's spelling by normalised URI.
    uris: RwLock<HashMap<String, Arc<str>>>,
    /// By id; the value is the task's token, whose count says that it has subscribers.
    tasks: RwLock<HashMap<Arc<str>, Arc<()>>>,
    max_uris: usize,
}

impl Filter {
    /// A filter for these lists, without any resource; [`Hub::filter`](super::Hub::filter) sets the limit.
    pub(super) fn new(lists: ListChanges, max_uris: usize) -> Self {
        Self { lists, uris: RwLock::default(), tasks: RwLock::default(), max_uris }
    }

    /// Adds a resource; `false` if the filter is full.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let mut uris = self.uris.write();
        let key = normalize_uri(uri);
        if uris.len() >= self.max_uris && !uris.contains_key(&key) {
            return false;
        }
        uris.entry(key).or_insert_with(|| uri.into());
        true
    }

    /// Removes a resource; no effect if it was not added.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.uris.write().remove(&normalize_uri(uri));
    }

    /// The number of resources, and the bytes of their URIs.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP sessions limit the size"))]
    pub(crate) fn size(&self) -> (usize, usize) {
        let uris = self.uris.read();
        (uris.len(), uris.iter().map(|(key, uri)| key.len() + uri.len()).sum())
    }

    /// Adds a task, with the token by which it counts its subscribers; `false` if the filter is full.
    pub(crate) fn add_task(&self, id: Arc<str>, token: Arc<()>) -> bool {
        let mut tasks = self.tasks.write();
        let fits = tasks.len() < self.max_uris || tasks.contains_key(&id);
        if fits {
            tasks.insert(id, token);
        }
        fits
    }

    /// Removes a task.
    pub(crate) fn remove_task(&self, id: &str) {
        self.tasks.write().remove(id);
    }

    /// The change as this subscriber gets it; `None` if it is not subscribed to it. URIs of published changes are
    /// normalised, but the subscriber gets its own spelling, since it may compare URIs as text.
    pub(super) fn select(&self, change: &Change) -> Option<Change> {
        let select_if = |subscribed: bool| subscribed.then(|| change.clone());
        match change {
            Change::Tools => select_if(self.lists.tools),
            Change::Prompts => select_if(self.lists.prompts),
            Change::Resources => select_if(self.lists.resources),
            Change::Updated(uri) => {
                let uris = self.uris.read();
                uris.get(&**uri).cloned().map(Change::Updated)
            }
            Change::Task(task) => select_if(self.tasks.read().contains_key(task.0.id())),
        }
    }
}
