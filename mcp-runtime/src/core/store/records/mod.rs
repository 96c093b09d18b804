//! Records of one type in a table of the store. A record is changed by reading, changing and replacing it, again whenever
//! another process was faster, so that no change is lost.

mod lease;

use std::{marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

pub(crate) use self::lease::Leases;
use super::{Condition, Found, SealedStore, StoreError, Table, Write, Written};
use crate::core::{
    log_limit::{LogLimit, LogLine},
    sync::Mutex,
};

/// How often a change is tried of a record that others change at the same time.
const TRIES: usize = 16;

/// A value of a table that knows whose it is, and how long it is kept.
pub(crate) trait Record: Serialize + DeserializeOwned + Clone + Send + Sync {
    /// The owner whose share of the table it uses.
    fn owner(&self) -> &str;

    /// How long it is kept from now on.
    fn expires_in(&self) -> std::time::Duration;
}

/// A record and its version.
#[derive(Clone)]
pub(crate) struct Versioned<T> {
    pub(crate) record: T,
    pub(crate) version: u64,
}

/// The outcome of a change.
pub(crate) enum Updated<T> {
    Stored(Versioned<T>),
    /// There was nothing to change.
    Unchanged(Versioned<T>),
    /// No record has that key.
    Nothing,
    /// Only replicas of another version of this crate can read the record.
    OtherVersion,
    /// The table has no room for the change.
    Full,
}

/// Logs that a store of the program, which many requests need, has failed.
pub(crate) fn log_store_error(error: &dyn std::fmt::Display, what: &'static str) {
    // a place has few
    static LIMITS: Mutex<Vec<(&str, Arc<LogLimit>)>> = Mutex::new(Vec::new());
    let limit = {
        let mut limits = LIMITS.lock();
        let known = limits.iter().find(|(known, _)| *known == what).map(|(_, limit)| limit.clone());
        known.unwrap_or_else(|| {
            let limit = Arc::<LogLimit>::default();
            limits.push((what, limit.clone()));
            limit
        })
    };
    if let Some(LogLine { suppressed }) = limit.line() {
        tracing::error!(suppressed, %error, "{what}");
    }
}

/// The records of one table.
pub(crate) struct Records<T> {
    store: SealedStore,
    table: Table,
    of: PhantomData<fn() -> T>,
}

impl<T: Record> Records<T> {
    pub(crate) fn new(store: &SealedStore, table: Table) -> Self {
        Self { store: store.clone(), table, of: PhantomData }
    }

    /// A record. One of another version of this crate is not there, and the log says so.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Versioned<T>>, StoreError> {
        Ok(match self.find(key).await? {
            Found::Value(found) => Some(found),
            Found::Nothing | Found::OtherVersion => None,
        })
    }

    /// Looks a record up, where it matters that another version of this crate has written it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn find(&self, key: &str) -> Result<Found<Versioned<T>>, StoreError> {
        let value = match self.store.find(&self.table, key).await? {
            Found::Value(value) => value,
            Found::Nothing => return Ok(Found::Nothing),
            Found::OtherVersion => return Ok(Found::OtherVersion),
        };
        Ok(match serde_json::from_slice(&value.bytes) {
            Ok(record) => Found::Value(Versioned { record, version: value.version }),
            Err(_) => {
                self.store.log_other_version(&self.table);
                Found::OtherVersion
            }
        })
    }

    /// Puts a record under a condition.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the record was put.
    pub(crate) async fn put(
        &self,
        key: &str,
        record: &T,
        condition: Condition,
    ) -> Result<Written, StoreError> {
        let bytes = serde_json::to_vec(record)?;
        let write =
            Write { bytes: &bytes, owner: record.owner(), expires_in: record.expires_in(), condition };
        self.store.put(&self.table, key, write).await
    }

    /// Changes a record, first as it is `known` if it is. `change` is called with what the store has, possibly several times;
    /// it returns whether there is anything to change, and changes nothing otherwise.
    ///
    /// # Errors
    /// The store cannot be reached, so that it is not known whether the record was changed; or too many change it.
    pub(crate) async fn update(
        &self,
        key: &str,
        known: Option<Versioned<T>>,
        change: impl FnMut(&mut T) -> bool + Send,
    ) -> Result<Updated<T>, StoreError> {
        self.replace(key, known, None, change).await
    }

    /// Changes a record, or `new` if there is none.
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub(crate) async fn update_or_create(
        &self,
        key: &str,
        new: T,
        change: impl FnMut(&mut T) -> bool + Send,
    ) -> Result<Updated<T>, StoreError> {
        self.replace(key, None, Some(new), change).await
    }

    async fn replace(
        &self,
        key: &str,
        mut known: Option<Versioned<T>>,
        new: Option<T>,
        mut change: impl FnMut(&mut T) -> bool + Send,
    ) -> Result<Updated<T>, StoreError> {
        for _ in 0..TRIES {
            let found = match known.take() {
                Some(known) => Found::Value(known),
                None => self.find(key).await?,
            };
            let (mut record, condition) = match (found, &new) {
                (Found::Value(Versioned { mut record, version }), _) => {
                    if !change(&mut record) {
                        return Ok(Updated::Unchanged(Versioned { record, version }));
                    }
                    (record, Condition::Version(version))
                }
                (Found::Nothing, Some(new)) => (new.clone(), Condition::Absent),
                (Found::Nothing, None) => return Ok(Updated::Nothing),
                (Found::OtherVersion, _) => return Ok(Updated::OtherVersion),
            };
            if condition == Condition::Absent {
                change(&mut record);
            }
            match self.put(key, &record, condition).await? {
                Written::Stored => {
                    return Ok(Updated::Stored(Versioned { record, version: condition.next_version() }));
                }
                Written::Conflict => {}
                Written::Full => return Ok(Updated::Full),
            }
        }
        Err("a record of the store is changed by many at once".into())
    }

    /// Removes a record, if there is one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.store.remove(&self.table, key).await
    }
}
