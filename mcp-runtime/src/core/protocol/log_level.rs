//! The severity of log messages in `notifications/message`.

use std::{fmt, str::FromStr};

use super::ParseNameError;

/// The severity of a log message: the syslog levels of RFC 5424, least severe first.
///
/// See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Information about normal operation.
    Info,
    /// Normal, but significant.
    Notice,
    /// A condition that may lead to an error.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// Action must be taken immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// Every level, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The wire's name, such as `warning`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// Parses the wire name, such as `warning`.
impl FromStr for LogLevel {
    type Err = ParseNameError;

    fn from_str(name: &str) -> Result<Self, ParseNameError> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == name);
        found.ok_or_else(|| ParseNameError::new("log level", name))
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
