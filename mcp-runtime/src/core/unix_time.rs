//! Times as numbers, as records and the wire have them.

use std::time::{Duration, SystemTime};

/// Milliseconds, as many as a number can have.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970.
pub(crate) fn unix_millis(time: SystemTime) -> u64 {
    millis(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// Seconds since 1970.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    unix_millis(time) / 1000
}
