//! One thing that has changed, and the notification that says so. The hub carries changes, followers write them.

use std::sync::Arc;

use crate::jsonrpc::{Object, notification};

/// What has changed. Two equal changes that wait for the same follower are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or that of templates.
    Resources,
    /// The contents of the resource at this URI.
    Updated(Arc<str>),
}

impl Change {
    /// The wire's notification, with what `meta` writes into its `_meta`, on one line without its end.
    pub(crate) fn notification(&self, meta: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        let method = match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Updated(_) => "notifications/resources/updated",
        };
        notification(method, |params| {
            meta(params);
            if let Self::Updated(uri) = self {
                params.str("uri", uri);
            }
        })
    }
}
