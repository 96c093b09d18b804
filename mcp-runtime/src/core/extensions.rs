//! Values by type: the state of a server, or values of one request. `get::<T>` finds a value that was inserted as `T`, as
//! `Arc<T>`, or (for traits) as `Arc<dyn T>`.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// An `Arc` of a value, without its type.
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;

/// A value, or the reason why it does not exist; functions that take it answer with this text.
type Made = Result<AnyValue, Arc<str>>;

/// A value, or the place of one that is made when the server opens.
#[derive(Debug, Clone)]
enum Entry {
    Present(AnyValue),
    Later(Arc<OnceLock<Made>>),
}

/// Values by type. The key of a `T` is the `TypeId` of `Arc<T>`.
#[derive(Debug, Default, Clone)]
pub(crate) struct Extensions(HashMap<TypeId, Entry>);

impl Extensions {
    /// Inserts a value; one of the same type is replaced.
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.insert_arc(Arc::new(value));
    }

    /// Inserts a shared value; one of the same type is replaced.
    pub(crate) fn insert_arc<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.insert_any(TypeId::of::<Arc<T>>(), Arc::new(value));
    }

    fn insert_any(&mut self, key: TypeId, value: AnyValue) {
        self.0.insert(key, Entry::Present(value));
    }

    /// Takes a value out that nothing else has.
    #[cfg(feature = "config")]
    pub(crate) fn take<T: Any + Send + Sync>(&mut self) -> Option<T> {
        let Some(Entry::Present(value)) = self.0.remove(&TypeId::of::<Arc<T>>()) else { return None };
        Arc::into_inner(Arc::into_inner(value.downcast::<Arc<T>>().ok()?)?)
    }

    /// Reserves the place of a value that is made later: a second one of its type is refused as if it existed.
    pub(crate) fn reserve(&mut self, key: TypeId) {
        self.0.insert(key, Entry::Later(Arc::default()));
    }

    /// Fills a place that was reserved, once.
    pub(crate) fn fill(&self, key: TypeId, made: Made) {
        if let Some(Entry::Later(place)) = self.0.get(&key) {
            // only one attempt runs at a time, and it leaves out what is made
            let _filled = place.set(made);
        }
    }

    /// Whether a place that was reserved is filled.
    pub(crate) fn is_filled(&self, key: TypeId) -> bool {
        matches!(self.0.get(&key), Some(Entry::Later(place)) if place.get().is_some())
    }

    /// Why the value of one of these keys, which was to be made, does not exist.
    pub(crate) fn unmade(&self, keys: [TypeId; 2]) -> Option<Arc<str>> {
        let Entry::Later(place) = keys.iter().find_map(|key| self.0.get(key))? else { return None };
        match place.get() {
            Some(Ok(_)) => None,
            Some(Err(reason)) => Some(reason.clone()),
            None => Some("state is made when the server is served, and not for this command".into()),
        }
    }

    /// The keys of the values for `T`.
    pub(crate) fn keys_for<T: ?Sized + 'static>() -> [TypeId; 2] {
        [TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>()]
    }

    /// The value of the first of these keys that has one.
    pub(crate) fn value(&self, keys: [TypeId; 2]) -> Option<&(dyn Any + Send + Sync)> {
        if self.0.is_empty() {
            return None;
        }
        let value = |key| match self.0.get(&key)? {
            Entry::Present(value) => Some(&**value),
            Entry::Later(place) => place.get()?.as_ref().ok().map(|value| &**value),
        };
        let [own, shared] = keys;
        value(own).or_else(|| value(shared))
    }

    /// A value of one of [`keys_for`](Self::keys_for) as a `T`.
    pub(crate) fn downcast<T: ?Sized + 'static>(value: &(dyn Any + Send + Sync)) -> Option<&T> {
        match value.downcast_ref::<Arc<T>>() {
            Some(value) => Some(value),
            None => match value.downcast_ref::<Arc<Arc<T>>>() {
                Some(value) => Some(value),
                None => None,
            },
        }
    }

    /// The value for `T`.
    #[must_use]
    pub(crate) fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        self.value(Self::keys_for::<T>()).and_then(Self::downcast)
    }

    /// Whether a value would provide what another one of these provides: the same type, or an `Arc` of it.
    #[cfg(feature = "config")]
    pub(crate) fn provides_like<T: Any>(&self) -> bool {
        self.contains_any(&Self::keys_like::<T>())
    }

    /// The keys of such values; the first is that of `T` itself.
    pub(crate) fn keys_like<T: Any>() -> [TypeId; 3] {
        [TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>(), TypeId::of::<T>()]
    }

    /// The values of both; those of `self` take precedence.
    pub(crate) fn merge_over(&self, base: &Arc<Self>) -> Arc<Self> {
        if self.0.is_empty() {
            return base.clone();
        }
        Arc::new(base.with(self))
    }

    /// The values of both; those of `others` take precedence.
    pub(crate) fn with(&self, others: &Self) -> Self {
        let mut merged = self.0.clone();
        merged.extend(others.0.iter().map(|(key, entry)| (*key, entry.clone())));
        Self(merged)
    }

    pub(crate) fn contains_any(&self, keys: &[TypeId]) -> bool {
        keys.iter().any(|key| self.0.contains_key(key))
    }
}
