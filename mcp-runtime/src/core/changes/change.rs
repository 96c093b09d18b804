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

/// Something with an id whose changes clients subscribe to.
pub(crate) trait Subject: Send + Sync {
    fn id(&self) -> &str;

    /// The method of its notifications.
    fn method(&self) -> &'static str;

    /// Writes its current state.
    fn write(&self, params: &mut Object<'_>);
}

/// A subject that has changed; equal to every other change of that subject, since the notification contains its state at the
/// time of writing.
#[derive(Clone)]
pub(crate) struct SubjectChange(pub(crate) Arc<dyn Subject>);

impl PartialEq for SubjectChange {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for SubjectChange {}

impl Hash for SubjectChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
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
            Self::Subject(SubjectChange(subject)) => subject.method(),
        };
        notification(method, |params| {
            meta(params);
            match self {
                Self::List(_) => {}
                Self::Updated(uri) => {
                    params.str("uri", uri);
                }
                Self::Subject(SubjectChange(subject)) => subject.write(params),
            }
        })
    }
}
