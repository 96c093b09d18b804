//! Values by type: a server's state, or what belongs to one request. A value is found as `T` whether it was put in as
//! `T`, as `Arc<T>`, or (for traits) as `Arc<dyn T>`.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

/// Values by their type.
#[derive(Default, Clone)]
pub(crate) struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Puts a value in; one of the same type is replaced.
    pub(crate) fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.share(Arc::new(value));
    }

    /// Puts a value in that others hold as well; one of the same type is replaced.
    pub(crate) fn share<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
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

    /// These values before those of `others`.
    pub(crate) fn over(&self, others: &Arc<Self>) -> Arc<Self> {
        if self.0.is_empty() {
            return others.clone();
        }
        let mut all = others.0.clone();
        all.extend(self.0.iter().map(|(slot, value)| (*slot, value.clone())));
        Arc::new(Self(all))
    }

    /// Whether there is a value whose slot is that of `Arc<T>` or of `Arc<Arc<T>>`.
    pub(crate) fn holds(&self, slots: &[TypeId]) -> bool {
        slots.iter().any(|slot| self.0.contains_key(slot))
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}
