//! Values by type: a server's state, or values of one request. A value is found as `T` whether it was inserted as `T`,
//! as `Arc<T>`, or (for traits) as `Arc<dyn T>`.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

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

    /// The values of both; of one type, that of `self`.
    pub(crate) fn merge_over(&self, others: &Arc<Self>) -> Arc<Self> {
        if self.0.is_empty() {
            return others.clone();
        }
        let mut all = others.0.clone();
        all.extend(self.0.iter().map(|(key, value)| (*key, value.clone())));
        Arc::new(Self(all))
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
