//! The error of parsing a name that the protocol defines.

use std::fmt;

/// A string is not the wire name of a [`Revision`](crate::Revision) or [`LogLevel`](crate::context::LogLevel).
///
/// ```
/// use mcp_runtime::{Revision, context::LogLevel};
///
/// assert_eq!("2025-11-25".parse(), Ok(Revision::V2025_11_25));
/// let error = "warn".parse::<LogLevel>().unwrap_err();
/// assert_eq!(error.to_string(), "`warn` is not a log level");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseNameError {
    kind: &'static str,
    name: String,
}

impl ParseNameError {
    pub(super) fn new(kind: &'static str, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }
}

impl fmt::Display for ParseNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a {}", self.name, self.kind)
    }
}

impl std::error::Error for ParseNameError {}
