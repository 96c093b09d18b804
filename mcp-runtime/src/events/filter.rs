//! What one subscriber wants to be told of. Fixed for a stream of the stateless era; sessions of the handshake era
//! add and remove URIs.

use std::{collections::HashMap, sync::Arc};

use crate::{events::Change, protocol::normalize_uri, sync::RwLock};

/// The lists whose changes somebody wants to be told of, or a server can tell of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

/// What one subscriber wants.
#[derive(Debug)]
pub(crate) struct Filter {
    lists: ListChanges,
    /// The subscriber's own spelling, by the normalised URI.
    uris: RwLock<HashMap<String, Arc<str>>>,
    /// What tells each task that it is followed, by its id.
    tasks: RwLock<HashMap<Arc<str>, Arc<()>>>,
    max_uris: usize,
}

impl Filter {
    /// These lists, and no resource yet; [`Hub::filter`](super::Hub::filter) knows the bound.
    pub(super) fn new(lists: ListChanges, max_uris: usize) -> Self {
        Self { lists, uris: RwLock::default(), tasks: RwLock::default(), max_uris }
    }

    /// Adds a resource; `false` if there is no room for another.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let mut uris = self.uris.write();
        let key = normalize_uri(uri);
        if uris.len() >= self.max_uris && !uris.contains_key(&key) {
            return false;
        }
        uris.entry(key).or_insert_with(|| uri.into());
        true
    }

    /// Removes a resource, whether or not it was there.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.uris.write().remove(&normalize_uri(uri));
    }

    /// How many resources, and the bytes of their URIs.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP keeps many subscribers"))]
    pub(crate) fn size(&self) -> (usize, usize) {
        let uris = self.uris.read();
        (uris.len(), uris.iter().map(|(key, uri)| key.len() + uri.len()).sum())
    }

    /// Adds a task, which knows by `followed` that it is followed; `false` if there is no room for another.
    pub(crate) fn follow_task(&self, id: Arc<str>, followed: Arc<()>) -> bool {
        let mut tasks = self.tasks.write();
        let room = tasks.len() < self.max_uris || tasks.contains_key(&id);
        if room {
            tasks.insert(id, followed);
        }
        room
    }

    /// Removes a task.
    pub(crate) fn leave_task(&self, id: &str) {
        self.tasks.write().remove(id);
    }

    /// The change as this subscriber is told of it, if it wants to be. URIs of changes are normalised; what is told
    /// is the subscriber's own spelling, since it may compare as text.
    pub(super) fn wants(&self, change: &Change) -> Option<Change> {
        let listed = |wanted: bool| wanted.then(|| change.clone());
        match change {
            Change::Tools => listed(self.lists.tools),
            Change::Prompts => listed(self.lists.prompts),
            Change::Resources => listed(self.lists.resources),
            Change::Updated(uri) => {
                let uris = self.uris.read();
                uris.get(&**uri).cloned().map(Change::Updated)
            }
            Change::Task(task) => listed(self.tasks.read().contains_key(task.0.id())),
        }
    }
}
