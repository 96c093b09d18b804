//! A change of a list, a resource or another subject, and its notification.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::core::{
    jsonrpc::{Object, notification},
    protocol::ItemList,
};

/// A change. Of equal changes a subscriber's queue holds one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    List(ItemList),
    /// The contents of the resource at this URI.
    Updated(Arc<str>),
    /// A change of an item that a subscriber names by its id.
    Subject(SubjectChange),
}

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

impl Change {
    /// The wire's notification, without a line end; `meta` writes its `_meta`.
    pub(crate) fn notification(&self, meta: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        let method = match self {
            Self::List(list) => list.notification(),
            Self::Updated(_) => "notifications/resources/updated",
            Self::Subject(subject) => subject.method,
        };
        notification(method, |params| {
            meta(params);
            match self {
                Self::List(_) => {}
                Self::Updated(uri) => {
                    params.str("uri", uri);
                }
                Self::Subject(subject) => (subject.write)(params),
            }
        })
    }
}
