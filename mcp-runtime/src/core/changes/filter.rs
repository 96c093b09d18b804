//! The changes that one subscriber gets. The filter of a `subscriptions/listen` stream is fixed; legacy sessions add and
//! remove URIs. The state of a URI is charged to its owner for as long as it is kept.

use std::{collections::HashMap, sync::Arc};

use super::hub::SubscriptionLimits;
use crate::core::{
    admission::Permit,
    changes::Change,
    connection::{SubscribeError, check_uri},
    protocol::{ItemList, normalize_uri},
    sync::RwLock,
};

/// The lists whose changes a client subscribes to, or a server publishes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges(u8);

impl ListChanges {
    pub(crate) fn insert(&mut self, list: ItemList) {
        self.0 |= 1 << list as u8;
    }

    pub(crate) fn contains(self, list: ItemList) -> bool {
        self.0 & (1 << list as u8) != 0
    }

    /// The lists in it, in the order of [`ItemList::ALL`].
    pub(crate) fn iter(self) -> impl Iterator<Item = ItemList> {
        ItemList::ALL.iter().copied().filter(move |list| self.contains(*list))
    }
}

impl FromIterator<ItemList> for ListChanges {
    fn from_iter<I: IntoIterator<Item = ItemList>>(lists: I) -> Self {
        let mut changes = Self::default();
        lists.into_iter().for_each(|list| changes.insert(list));
        changes
    }
}

/// The subscriptions of one subscriber.
pub(crate) struct Filter {
    lists: ListChanges,
    pub(super) uris: RwLock<SubscribedUris>,
    /// By id; the value is the subject's token, whose count says that it has subscribers.
    pub(super) subjects: RwLock<HashMap<Arc<str>, Arc<()>>>,
    pub(super) limits: SubscriptionLimits,
}

pub(super) struct SubscribedUris {
    /// The subscriber's spelling by normalized URI: nearly always the same text, which is kept once.
    pub(super) by_key: HashMap<Arc<str>, Arc<str>>,
    /// For the bytes of all of them.
    pub(super) permit: Permit,
}

/// Bytes that a subscription costs in addition to its URI.
pub(super) const OVERHEAD: usize = 128;

fn cost(key: &Arc<str>, uri: &Arc<str>) -> usize {
    let spelling = if Arc::ptr_eq(key, uri) { 0 } else { uri.len() };
    key.len() + spelling + OVERHEAD
}

impl Filter {
    /// A filter for these lists, without any resource; [`Hub::filter`](super::Hub::filter) sets the limits, and `permit` is
    /// that of the bytes that its owner subscribes with.
    pub(super) fn new(lists: ListChanges, limits: SubscriptionLimits, permit: Permit) -> Self {
        let uris = RwLock::new(SubscribedUris { by_key: HashMap::new(), permit });
        Self { lists, uris, subjects: RwLock::default(), limits }
    }

    /// Adds a resource; no effect if it is subscribed to already.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub(crate) fn subscribe(&self, uri: &str) -> Result<(), SubscribeError> {
        check_uri(uri)?;
        let key: Arc<str> = normalize_uri(uri).into();
        let mut uris = self.uris.write();
        let SubscribedUris { by_key, permit } = &mut *uris;
        if by_key.contains_key(&key) {
            return Ok(());
        }
        if by_key.len() >= self.limits.uris {
            return Err(SubscribeError::TooMany(self.limits.uris));
        }
        let uri = if *key == *uri { key.clone() } else { uri.into() };
        let bytes = self.limits.bytes;
        permit.try_grow(cost(&key, &uri)).map_err(|full| SubscribeError::TooManyBytes(bytes, full))?;
        by_key.insert(key, uri);
        Ok(())
    }

    /// Removes a resource; no effect if it was not added.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        let mut uris = self.uris.write();
        if let Some((key, uri)) = uris.by_key.remove_entry(&*normalize_uri(uri)) {
            uris.permit.shrink(cost(&key, &uri));
        }
    }

    /// Whether it is subscribed to a resource.
    pub(super) fn contains(&self, change: &Change) -> bool {
        match change {
            Change::Updated(uri) => self.uris.read().by_key.contains_key(&*normalize_uri(uri)),
            _ => true,
        }
    }

    /// The change as this subscriber gets it; `None` if it is not subscribed to it. URIs of published changes are
    /// normalized, but the subscriber gets its own spelling, since it may compare URIs as text.
    pub(super) fn select(&self, change: &Change) -> Option<Change> {
        let select_if = |subscribed: bool| subscribed.then(|| change.clone());
        match change {
            Change::List(list) => select_if(self.lists.contains(*list)),
            Change::Updated(uri) => {
                let uris = self.uris.read();
                uris.by_key.get(&**uri).cloned().map(Change::Updated)
            }
            #[cfg(feature = "tasks")]
            Change::Subject(subject) => select_if(self.subjects.read().contains_key(&subject.id)),
        }
    }
}
