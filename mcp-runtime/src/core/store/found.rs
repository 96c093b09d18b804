//! What is looked up and removed again in the store, by the features that keep something there.

use super::{Found, SealedStore, StoreError, Table};

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
