//! Values by type: the state of a server, or values of one request. `get::<T>` finds a value that was inserted as `T`, as
//! `Arc<T>`, or (for traits) as `Arc<dyn T>`.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

/// Why a value that was to be made for the server does not exist; functions that take it answer with this text.
#[cfg(feature = "config")]
#[derive(Debug, Clone)]
pub(crate) struct Unmade(pub(crate) Arc<str>);

/// Values by type. The key of a `T` is the `TypeId` of `Arc<T>`.
#[derive(Default, Clone)]
pub(crate) struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Inserts a value; one of the same type is replaced.
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.insert_arc(Arc::new(value));
    }

    /// Inserts a shared value; one of the same type is replaced.
    pub(crate) fn insert_arc<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.0.insert(TypeId::of::<Arc<T>>(), Arc::new(value));
    }

    /// Records why a value of this type does not exist.
    #[cfg(feature = "config")]
    pub(crate) fn insert_unmade<T: Any>(&mut self, unmade: Unmade) {
        self.0.insert(TypeId::of::<Arc<T>>(), Arc::new(unmade));
    }

    /// Why a value for `T` does not exist, if that was recorded.
    #[cfg(feature = "config")]
    pub(crate) fn unmade<T: ?Sized + 'static>(&self) -> Option<&Unmade> {
        let keys = [TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>()];
        keys.iter().find_map(|key| self.0.get(key)?.downcast_ref())
    }

    /// The value for `T`.
    #[must_use]
    pub(crate) fn get<T: ?Sized + 'static>(&self) -> Option<&T> {
        if self.0.is_empty() {
            return None;
        }
        if let Some(value) = self.0.get(&TypeId::of::<Arc<T>>()) {
            return value.downcast_ref::<Arc<T>>().map(|v| &**v);
        }
        self.0.get(&TypeId::of::<Arc<Arc<T>>>())?.downcast_ref::<Arc<Arc<T>>>().map(|v| &***v)
    }

    /// Whether a value would provide what another one of these provides: the same type, or an `Arc` of it.
    pub(crate) fn provides_like<T: Any>(&self) -> bool {
        self.contains_any(&[TypeId::of::<Arc<T>>(), TypeId::of::<Arc<Arc<T>>>(), TypeId::of::<T>()])
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
        merged.extend(others.0.iter().map(|(key, value)| (*key, value.clone())));
        Self(merged)
    }

    pub(crate) fn contains_any(&self, keys: &[TypeId]) -> bool {
        keys.iter().any(|key| self.0.contains_key(key))
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}
