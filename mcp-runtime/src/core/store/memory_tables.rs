//! Values in the memory of this process, bounded by their tables.

use std::{collections::HashMap, sync::Arc};

use tokio::time::Instant;

use super::{Condition, Table, Value, Write, Written};
use crate::core::{
    admission::{OwnedEntry, OwnedTable, Owner},
    sync::Mutex,
};

type MemoryTable = OwnedTable<Arc<str>, Value, Instant>;

/// The values of all tables.
#[derive(Default)]
pub(super) struct MemoryTables(pub(super) Mutex<HashMap<Arc<str>, MemoryTable>>);

impl MemoryTables {
    pub(super) fn put(&self, table: &Table, key: &str, write: &Write<'_>) -> Written {
        let now = Instant::now();
        let mut tables = self.0.lock();
        let of_table = || OwnedTable::new(table.value_quota(), table.byte_quota());
        let values = tables.entry(table.name().into()).or_insert_with(of_table);
        values.expire(now);
        let version = values.get(key).map(|value| value.version);
        let holds = match write.condition {
            Condition::Always => true,
            Condition::Absent => version.is_none(),
            Condition::Version(expected) => version == Some(expected),
        };
        if !holds {
            return Written::Conflict;
        }
        let entry = OwnedEntry {
            owner: Owner::from_text(write.owner.into()),
            bytes: write.bytes.len(),
            expires: now + write.expires_in,
            value: Value { bytes: write.bytes.to_vec(), version: write.condition.next_version() },
        };
        values.put(key.into(), entry).map_or(Written::Full, |()| Written::Stored)
    }

    #[cfg(all(test, feature = "shared"))]
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
