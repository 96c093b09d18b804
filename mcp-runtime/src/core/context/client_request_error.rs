//! Why a client request failed.

use std::fmt;

use super::client_feature::ClientFeature;

/// Why a request to the client failed.
///
/// With `?` in a function that fails with [`ToolError`](crate::ToolError) the message is shown to the model, unless
/// the server is at fault (the last one).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientRequestError {
    /// The user declined the request with this key.
    Declined(Box<str>),
    /// The user dismissed the request with this key without an answer.
    Cancelled(Box<str>),
    /// The client does not declare this feature.
    Unsupported(ClientFeature),
    /// The client's revision of the protocol does not support this.
    Revision(&'static str),
    /// The response was still malformed after several tries.
    MalformedMessage {
        /// The key of the request.
        key: Box<str>,
        /// The reason why the last response is invalid.
        reason: String,
    },
    /// The client responded with an error.
    Refused {
        /// The key of the request.
        key: Box<str>,
        /// `code` on the wire.
        code: i64,
        /// `message` on the wire.
        message: String,
    },
    /// No response to the request with this key arrived in time.
    TimedOut(Box<str>),
    /// The client disconnected before it responded to the request with this key.
    Disconnected(Box<str>),
    /// No request can be sent to the client here, for this reason.
    Unavailable(&'static str),
    /// The request is not valid: in itself, or since another one or a saved result has the same key, or since it was sent from
    /// a spawned task instead of the function that the client called.
    Unfit {
        /// The key of the request.
        key: Box<str>,
        /// The reason why it is invalid.
        reason: String,
    },
}

impl ClientRequestError {
    /// Whether the model may see the message; otherwise the server is at fault.
    pub(crate) fn is_public(&self) -> bool {
        !matches!(self, Self::Unfit { .. })
    }
}

impl fmt::Display for ClientRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined(key) => write!(f, "the user declined to answer `{key}`"),
            Self::Cancelled(key) => write!(f, "the user cancelled `{key}`"),
            Self::Unsupported(feature) => {
                write!(f, "the client does not support `{feature}`, which is needed here")
            }
            Self::Revision(what) => write!(f, "the client's revision of the protocol has no {what}"),
            Self::MalformedMessage { key, reason } => {
                write!(f, "the answer to `{key}` does not fit: {reason}")
            }
            Self::Refused { key, code, message } => {
                write!(f, "the client refused `{key}`: {message} ({code})")
            }
            Self::TimedOut(key) => write!(f, "no answer to `{key}` came in time"),
            Self::Disconnected(key) => write!(f, "the client left before it answered `{key}`"),
            Self::Unavailable(why) => write!(f, "no request can be sent to the client: {why}"),
            Self::Unfit { key, reason } => write!(f, "the client request `{key}` is not valid: {reason}"),
        }
    }
}

impl std::error::Error for ClientRequestError {}
