//! What is looked up and removed again in the store.

use tokio::time::Instant;

use super::{SealedStore, StoreError, Table, Value, memory_tables::MemoryTables};

/// The value that the store has for a key.
pub(crate) enum Found<T = Value> {
    Nothing,
    /// A value that another version of this crate has written, and this one cannot read.
    OtherVersion,
    Value(T),
}

impl SealedStore {
    /// The value of a key, and its version.
    ///
    /// # Errors
    /// The store cannot be read, or has something there that the server has not sealed for it.
    pub(crate) async fn find(&self, table: &Table, key: &str) -> Result<Found, StoreError> {
        if let Some(shared) = &self.0.shared {
            return shared.find(table, key).await;
        }
        Ok(self.0.memory.get(table, key).map_or(Found::Nothing, Found::Value))
    }

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn remove(&self, table: &Table, key: &str) -> Result<(), StoreError> {
        if let Some(shared) = &self.0.shared {
            return shared.remove(table, key).await;
        }
        self.0.memory.remove(table, key);
        Ok(())
    }
}

impl MemoryTables {
    pub(super) fn get(&self, table: &Table, key: &str) -> Option<Value> {
        let mut tables = self.0.lock();
        let values = tables.get_mut(table.name())?;
        values.expire(Instant::now());
        values.get(key).cloned()
    }

    pub(super) fn remove(&self, table: &Table, key: &str) {
        if let Some(values) = self.0.lock().get_mut(table.name()) {
            values.remove(key);
        }
    }
}
