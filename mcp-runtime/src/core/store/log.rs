//! The entries of logs, which only stores that replicas share have, as plain data.

use std::{sync::Arc, time::Duration};

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
