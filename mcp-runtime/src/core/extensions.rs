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
pub(crate) struct Extensions {
    values: HashMap<TypeId, Entry>,
    /// Of a mounted builder: the settings of the builder into which it is mounted, which its own values take precedence over.
    settings: OnceLock<Arc<Extensions>>,
}

impl Extensions {
    /// Inserts a value; one of the same type is replaced.
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.insert_arc(Arc::new(value));
    }

    /// Inserts a shared value; one of the same type is replaced.
    pub(crate) fn insert_arc<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.values.insert(TypeId::of::<Arc<T>>(), Entry::Present(Arc::new(value)));
    }

    /// Takes a value out that nothing else has.
    #[cfg(feature = "config")]
    pub(crate) fn take<T: Any + Send + Sync>(&mut self) -> Option<T> {
        let Some(Entry::Present(value)) = self.values.remove(&TypeId::of::<Arc<T>>()) else { return None };
        Arc::into_inner(Arc::into_inner(value.downcast::<Arc<T>>().ok()?)?)
    }

    /// Reserves the place of a value that is made later: a second one of its type is refused as if it existed.
    pub(crate) fn reserve(&mut self, key: TypeId) {
        self.values.insert(key, Entry::Later(Arc::default()));
    }

    /// Fills a place that was reserved, once.
    pub(crate) fn fill(&self, key: TypeId, made: Made) {
        if let Some(Entry::Later(place)) = self.values.get(&key) {
            // only one attempt runs at a time, and it leaves out what is made
            let _filled = place.set(made);
        }
    }

    /// Whether a place that was reserved is filled.
    pub(crate) fn is_filled(&self, key: TypeId) -> bool {
        matches!(self.values.get(&key), Some(Entry::Later(place)) if place.get().is_some())
    }

    /// Why a value for `T`, which was to be made, does not exist.
    pub(crate) fn unmade<T: ?Sized + 'static>(&self) -> Option<Arc<str>> {
        let keys = [TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>()];
        let Entry::Later(place) = keys.iter().find_map(|key| self.entry(*key))? else { return None };
        match place.get() {
            Some(Ok(_)) => None,
            Some(Err(reason)) => Some(reason.clone()),
            None => Some("state is made when the server is served, and not for this command".into()),
        }
    }

    /// The values of these keys.
    #[cfg(feature = "config")]
    pub(crate) fn only(&self, keys: impl Iterator<Item = TypeId>) -> Self {
        let values = keys.filter_map(|key| Some((key, self.values.get(&key)?.clone()))).collect();
        Self { values, ..Self::default() }
    }

    /// Lets those of a mounted builder have the settings of the program, too.
    #[cfg(feature = "config")]
    pub(crate) fn see_settings(&self, settings: &Arc<Self>) {
        // once: a builder is mounted in one server
        let _known = self.settings.set(settings.clone());
    }

    fn entry(&self, key: TypeId) -> Option<&Entry> {
        self.values.get(&key).or_else(|| self.settings.get()?.values.get(&key))
    }

    /// The value of a key, if it exists.
    fn value(&self, key: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        match self.entry(key)? {
            Entry::Present(value) => Some(&**value),
            Entry::Later(place) => place.get()?.as_ref().ok().map(|value| &**value),
        }
    }

    /// The value for `T`.
    #[must_use]
    pub(crate) fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        if self.values.is_empty() && self.settings.get().is_none() {
            return None;
        }
        if let Some(value) = self.value(TypeId::of::<Arc<T>>()) {
            return value.downcast_ref::<Arc<T>>().map(|v| &**v);
        }
        self.value(TypeId::of::<Arc<Arc<T>>>())?.downcast_ref::<Arc<Arc<T>>>().map(|v| &***v)
    }

    /// Whether a value would provide what another one of these provides: the same type, or an `Arc` of it.
    pub(crate) fn provides_like<T: Any>(&self) -> bool {
        self.contains_any(&Self::keys_like::<T>())
    }

    /// The keys of such values; the first is that of `T` itself.
    pub(crate) fn keys_like<T: Any>() -> [TypeId; 3] {
        [TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>(), TypeId::of::<T>()]
    }

    /// The values of both; those of `self` take precedence.
    pub(crate) fn merge_over(&self, base: &Arc<Self>) -> Arc<Self> {
        if self.values.is_empty() {
            return base.clone();
        }
        Arc::new(base.with(self))
    }

    /// The values of both; those of `others` take precedence.
    pub(crate) fn with(&self, others: &Self) -> Self {
        let mut merged = self.clone();
        merged.values.extend(others.values.iter().map(|(key, entry)| (*key, entry.clone())));
        merged
    }

    pub(crate) fn contains_any(&self, keys: &[TypeId]) -> bool {
        keys.iter().any(|key| self.entry(*key).is_some())
    }
}
