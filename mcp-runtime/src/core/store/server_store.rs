//! State that a server keeps outside of its calls: in memory, or in a store that replicas share.

use std::sync::Arc;

use super::{
    Table, Write, Written,
    memory_tables::MemoryTables,
    shared::{Messages, Sealing},
};

pub(crate) type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// The store of one server; clones are the same.
#[derive(Clone)]
pub(crate) struct SealedStore(pub(super) Arc<StoreInner>);

#[derive(Default)]
pub(super) struct StoreInner {
    /// What is kept without a store that replicas share.
    pub(super) memory: MemoryTables,
    pub(super) shared: Option<Sealing>,
    pub(super) messages: Messages,
}

impl SealedStore {
    pub(crate) fn in_memory() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.0.shared.is_some()
    }

    /// Puts a value, if its condition and the limits of the table allow that.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the value was put.
    pub(crate) async fn put(
        &self,
        table: &Table,
        key: &str,
        write: Write<'_>,
    ) -> Result<Written, StoreError> {
        if let Some(shared) = &self.0.shared {
            return shared.put(table, key, write).await;
        }
        Ok(self.0.memory.put(table, key, &write))
    }
}
