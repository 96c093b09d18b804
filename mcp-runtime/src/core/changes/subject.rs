//! Changes of what clients name by ids, such as tasks, and the subscriptions to these.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use super::filter::{Filter, OVERHEAD};
use crate::core::jsonrpc::Object;

/// A change of something with an id; equal to every other change of it, since the notification has its state at the time of
/// writing.
#[derive(Clone)]
pub(crate) struct SubjectChange {
    pub(crate) id: Arc<str>,
    /// The method of the notification.
    pub(crate) method: &'static str,
    /// Writes the current state.
    pub(crate) write: Arc<dyn Fn(&mut Object<'_>) + Send + Sync>,
}

impl PartialEq for SubjectChange {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for SubjectChange {}

impl Hash for SubjectChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for SubjectChange {
    // the id may be a secret
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectChange")
    }
}

impl Filter {
    /// Adds a subject, with the token by which it counts its subscribers; `false` if the filter is full.
    pub(crate) fn add_subject(&self, id: Arc<str>, token: Arc<()>) -> bool {
        let mut subjects = self.subjects.write();
        if subjects.contains_key(&id) {
            return true;
        }
        let fits = subjects.len() < self.limits.uris && self.uris.write().permit.grow(OVERHEAD);
        if fits {
            subjects.insert(id, token);
        }
        fits
    }

    /// Removes a subject.
    pub(crate) fn remove_subject(&self, id: &str) {
        if self.subjects.write().remove(id).is_some() {
            self.uris.write().permit.shrink(OVERHEAD);
        }
    }
}
