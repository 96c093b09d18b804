//! What a store keeps and passes on, as plain data: tables with their limits, values, the entries of logs, and messages.

use std::{sync::Arc, time::Duration};

use crate::core::admission::Quota;

/// A part of a store, with its limits. Expired values count no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    name: Arc<str>,
    values: usize,
    bytes: usize,
    share_percent: u8,
}

impl Table {
    /// A table of at most this many values, and this many bytes in total; one owner may have `share_percent` of both.
    #[must_use]
    pub fn new(name: &str, values: usize, bytes: usize, share_percent: u8) -> Self {
        Self { name: name.into(), values, bytes, share_percent }
    }

    /// Its name, of ASCII letters, digits, `-`, `_`, `.` and `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many values it may have.
    #[must_use]
    pub fn max_values(&self) -> usize {
        self.values
    }

    /// How many bytes its values may have in total.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn value_quota(&self) -> Quota {
        Quota::new(self.values, self.share_percent)
    }

    pub(super) fn byte_quota(&self) -> Quota {
        Quota::new(self.bytes, self.share_percent)
    }

    /// The same under another name.
    #[cfg(feature = "shared")]
    pub(super) fn renamed(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }
}

/// A value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The stored value.
    pub bytes: Vec<u8>,
    /// 1, or one more than the version it has replaced by [`Condition::Version`].
    pub version: u64,
}

/// A value to put.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The value.
    pub bytes: &'a [u8],
    /// The owner whose share of the table it uses.
    pub owner: &'a str,
    /// For how long it is kept.
    pub expires_in: Duration,
    /// When it is put.
    pub condition: Condition,
}

/// When a value is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Whether or not the key has a value; its version is 1 then.
    Always,
    /// If the key has no value; its version is 1 then.
    Absent,
    /// If the key has a value of that version, which grows by one.
    Version(u64),
}

impl Condition {
    /// The version of a value that was put under it.
    #[must_use]
    pub fn next_version(self) -> u64 {
        match self {
            Self::Always | Self::Absent => 1,
            Self::Version(version) => version.saturating_add(1),
        }
    }
}

/// The outcome of putting a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It was put.
    Stored,
    /// Its condition does not hold.
    Conflict,
    /// It would exceed what its owner, or all owners together, may have in the table.
    Full,
}

/// An entry to append to a log.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// Its position, from 1 to 2⁵³ - 1.
    pub position: u64,
    /// The entry.
    pub bytes: &'a [u8],
    /// The owner whose share of the table a new log uses.
    pub owner: &'a str,
    /// How many entries the log may have.
    pub max_entries: usize,
    /// How many bytes its entries may have in total.
    pub max_bytes: usize,
    /// For how long the log is kept if nothing else is appended.
    pub expires_in: Duration,
}

/// The outcome of appending an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It was appended.
    Stored,
    /// The log has that many positions already, or fewer: the next entry must have this one.
    Conflict(u64),
    /// It has more bytes than the log, the owner or the table may have. Nothing has changed.
    TooLarge,
}

/// Entries that were read of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The entries, in order; their positions are consecutive.
    pub entries: Vec<LogEntry>,
    /// The position of the oldest entry that the log still has. If it is not that of the entry to be read next, or lower,
    /// entries between the two have gone.
    pub first: u64,
    /// The position of the newest entry of the log. If it is lower than the position that was read after, that was the
    /// position of an earlier log of this name.
    pub last: u64,
}

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it is.
    pub position: u64,
    /// The appended entry.
    pub bytes: Arc<[u8]>,
}

/// An item that a subscriber of a topic receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Arc<[u8]>),
    /// Messages may have been lost.
    Missed,
}
