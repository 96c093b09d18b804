//! What is published when changes of other replicas may have been missed: everything may have changed.

use std::task::Waker;

use super::{Change, Filter, Hub};
use crate::core::{connection::Access, protocol::ItemList};

impl Hub {
    /// Publishes to every subscriber whatever its filter selects but subjects; updates of resources that it `is_allowed` to
    /// read.
    pub(crate) fn publish_everything(&self, is_allowed: impl Fn(&str, Access<'_>) -> bool) {
        let limit = self.0.limits.pending;
        for subscriber in self.subscribers() {
            let caller = subscriber.current_caller();
            let access = Access::new(caller.as_deref(), subscriber.access_rules.as_deref());
            for change in subscriber.filter.everything() {
                if !matches!(&change, Change::Updated(uri) if !is_allowed(uri, access)) {
                    subscriber.enqueue(&change, limit).into_iter().for_each(Waker::wake);
                }
            }
        }
    }
}

impl Filter {
    /// Every list, and every resource of the subscriber.
    fn everything(&self) -> Vec<Change> {
        let mut changes: Vec<_> = ItemList::ALL.iter().copied().map(Change::List).collect();
        changes.extend(self.uris.read().by_key.keys().cloned().map(Change::Updated));
        changes
    }
}
