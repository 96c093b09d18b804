//! Leases: a process holds a name until its lease is over, or it releases it. What a process does alone for all replicas has
//! a name; its own id says that it is there.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Found, Record, Records, SealedStore, StoreError, Table, Updated};

/// Names that are held at once.
const MAX_LEASES: usize = 1024;

/// The leases of the replicas of a server.
pub(crate) struct Leases {
    records: Records<Lease>,
    process: Arc<str>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Lease {
    holder: Arc<str>,
    #[serde(skip)]
    lasts: Duration,
}

impl Record for Lease {
    fn owner(&self) -> &str {
        // the only owner, which has all of the table
        "local"
    }

    fn expires_in(&self) -> Duration {
        self.lasts
    }
}

impl Leases {
    pub(crate) fn new(store: &SealedStore) -> Self {
        let table = Table::new("leases", MAX_LEASES, 1 << 20, 100);
        Self { records: Records::new(store, table), process: store.process().clone() }
    }

    /// Holds a name for this process, for that long from now on; `false` if another process holds it.
    ///
    /// # Errors
    /// The store cannot be reached, or too many names are held.
    pub(crate) async fn hold(&self, name: &str, lasts: Duration) -> Result<bool, StoreError> {
        let new = Lease { holder: self.process.clone(), lasts };
        let renew = |lease: &mut Lease| {
            lease.lasts = lasts;
            lease.holder == self.process
        };
        match self.records.update_or_create(name, new, renew).await? {
            Updated::Stored(_) => Ok(true),
            Updated::Full => Err("too many processes have leases".into()),
            Updated::Unchanged(_) | Updated::Nothing | Updated::OtherVersion => Ok(false),
        }
    }

    /// Whether some process holds a name.
    ///
    /// # Errors
    /// The store cannot be reached.
    #[cfg(feature = "tasks")]
    pub(crate) async fn is_held(&self, name: &str) -> Result<bool, StoreError> {
        Ok(!matches!(self.records.find(name).await?, Found::Nothing))
    }

    /// Releases a name that this process holds.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn release(&self, name: &str) -> Result<(), StoreError> {
        let is_own = self.records.get(name).await?.is_some_and(|lease| lease.record.holder == self.process);
        if is_own { self.records.remove(name).await } else { Ok(()) }
    }
}
