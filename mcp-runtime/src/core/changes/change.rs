//! A change of a list, a resource or another subject, and its notification.

use std::sync::Arc;

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
    #[cfg(feature = "tasks")]
    Subject(super::SubjectChange),
}

impl Change {
    /// The wire's notification, without a line end; `meta` writes its `_meta`.
    pub(crate) fn notification(&self, meta: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        let method = match self {
            Self::List(list) => list.notification(),
            Self::Updated(_) => "notifications/resources/updated",
            #[cfg(feature = "tasks")]
            Self::Subject(subject) => subject.method,
        };
        notification(method, |params| {
            meta(params);
            match self {
                Self::List(_) => {}
                Self::Updated(uri) => {
                    params.str("uri", uri);
                }
                #[cfg(feature = "tasks")]
                Self::Subject(subject) => (subject.write)(params),
            }
        })
    }
}
