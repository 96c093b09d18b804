//! A change of a list, a resource or a task, and its notification.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::jsonrpc::{Object, notification};

/// What has changed. Of equal changes a subscriber's queue holds one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of resource templates.
    Resources,
    /// The contents of the resource at this URI.
    Updated(Arc<str>),
    /// This task.
    Task(TaskChange),
}

/// A task, as its subscribers see it.
pub(crate) trait TaskView: Send + Sync {
    fn id(&self) -> &str;

    /// Writes its current state.
    fn write(&self, task: &mut Object<'_>);
}

/// A task that has changed; equal to every other change of that task, since the notification contains its state at the
/// time of writing.
#[derive(Clone)]
pub(crate) struct TaskChange(pub(crate) Arc<dyn TaskView>);

impl PartialEq for TaskChange {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for TaskChange {}

impl Hash for TaskChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl fmt::Debug for TaskChange {
    // the id is a secret
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskChange")
    }
}

impl Change {
    /// The wire's notification, without a line end; `meta` writes its `_meta`.
    pub(crate) fn notification(&self, meta: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
        let method = match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Updated(_) => "notifications/resources/updated",
            Self::Task(_) => "notifications/tasks",
        };
        notification(method, |params| {
            meta(params);
            match self {
                Self::Tools | Self::Prompts | Self::Resources => {}
                Self::Updated(uri) => {
                    params.str("uri", uri);
                }
                Self::Task(TaskChange(task)) => task.write(params),
            }
        })
    }
}
