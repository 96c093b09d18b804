//! The reasons why a client cannot subscribe to a resource that it may read: the state of subscriptions is limited.

use std::fmt;

use crate::core::{admission::Full, jsonrpc::ProtocolError};

/// Bytes of one URI that is subscribed to.
pub(crate) const MAX_URI: usize = 8 << 10;

/// Why a resource cannot be subscribed to, though the client may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscribeError {
    /// The length of the URI in bytes, which is too long.
    TooLong(usize),
    /// The number of the subscriber's subscriptions, which is the maximum.
    TooMany(usize),
    /// The bytes of subscribed URIs that are kept, which are the maximum for all clients or for this one.
    TooManyBytes(usize, Full),
    /// Nothing can be kept of the client's session.
    NoSession,
}

impl fmt::Display for SubscribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => {
                write!(f, "the URI has {bytes} bytes, and that of a subscription may have {MAX_URI}")
            }
            Self::TooMany(limit) => {
                write!(
                    f,
                    "too many subscriptions: a client may have {limit}\nend one with `resources/unsubscribe`"
                )
            }
            Self::TooManyBytes(limit, Full::Share) => {
                write!(
                    f,
                    "the URIs of this client's subscriptions have too many bytes, of {limit} for all clients\nend some of them"
                )
            }
            Self::TooManyBytes(limit, Full::Table) => {
                write!(
                    f,
                    "the URIs of all clients' subscriptions have {limit} bytes, which is the limit\ntry again"
                )
            }
            Self::NoSession => f.write_str(
                "too many sessions of this client have open streams or subscriptions\nend one of them",
            ),
        }
    }
}

impl From<SubscribeError> for ProtocolError {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::TooLong(_) => Self::invalid_params(error.to_string()),
            _ => Self::internal(error.to_string()),
        }
    }
}

/// Checks the length of a URI, before anything else is done with it.
///
/// # Errors
/// It is longer than what is kept of a subscription.
pub(crate) fn check_uri(uri: &str) -> Result<(), SubscribeError> {
    if uri.len() > MAX_URI { Err(SubscribeError::TooLong(uri.len())) } else { Ok(()) }
}
