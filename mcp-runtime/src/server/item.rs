//! One item as a builder was told of it, before the builder's state is complete. Called by the builder.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use crate::{
    def::Service,
    extensions::Extensions,
    registry::{Registered, Source},
};

/// An item, without or with the state of the builder that it was registered with.
pub(super) enum Item {
    Own {
        source: Source,
        prefix: String,
        this: Option<Arc<dyn Any + Send + Sync>>,
        /// The service again, for functions that an attribute names: they take it as state.
        service: Extensions,
    },
    /// Of a mounted builder, with its own state.
    Mounted(Registered),
}

impl Item {
    pub(super) fn new(source: Source) -> Self {
        Self::Own { source, prefix: String::new(), this: None, service: Extensions::default() }
    }

    /// Makes it a method of that service.
    pub(super) fn belong_to<S: Service>(&mut self, value: &Arc<S>, under: &str) {
        if let Self::Own { prefix, this, service, .. } = self {
            under.clone_into(prefix);
            *this = Some(value.clone());
            service.share(value.clone());
        }
    }

    pub(super) fn key(&self) -> Option<usize> {
        match self {
            Self::Own { source: Source::Annotated(item), .. } => Some(item.key()),
            _ => None,
        }
    }

    pub(super) fn registered(self, state: &Arc<Extensions>, requested: &Arc<[TypeId]>) -> Registered {
        match self {
            Self::Own { source, prefix, this, service } => {
                let state = service.over(state);
                Registered { source, prefix, this, state, requested: requested.clone() }
            }
            Self::Mounted(item) => item,
        }
    }
}
