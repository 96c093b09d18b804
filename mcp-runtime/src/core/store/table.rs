//! What a store keeps and passes on, as plain data: tables with their limits, values, and messages.

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
    pub(crate) fn renamed(&self, name: &str) -> Self {
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

/// An item that a subscriber of a topic receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Arc<[u8]>),
    /// Messages may have been lost.
    Missed,
}
