//! Why a question got no answer.

use std::fmt;

use super::feature::ClientFeature;

/// Why a function that asked its client got no answer.
///
/// With `?` in a function that fails with [`ToolError`](crate::ToolError) the message is shown to the model, unless
/// the mistake is the server's own (the last three).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The user said no.
    Declined {
        /// The key of the question.
        key: Box<str>,
    },
    /// The user closed the question without an answer.
    Cancelled {
        /// The key of the question.
        key: Box<str>,
    },
    /// The client did not declare that it can be asked for this.
    Unsupported {
        /// What it would need.
        feature: ClientFeature,
    },
    /// The client's revision of the protocol does not have this.
    Revision {
        /// What it does not have.
        what: &'static str,
    },
    /// The answer was still of no use after several tries.
    Malformed {
        /// The key of the question.
        key: Box<str>,
        /// What was wrong with the last answer.
        reason: String,
    },
    /// The client answered with an error.
    Refused {
        /// The key of the question.
        key: Box<str>,
        /// The wire's `code`.
        code: i64,
        /// The wire's `message`.
        message: String,
    },
    /// No answer came in time.
    TimedOut {
        /// The key of the question.
        key: Box<str>,
    },
    /// The client has gone.
    Disconnected {
        /// The key of the question.
        key: Box<str>,
    },
    /// Clients cannot be asked here.
    Unavailable {
        /// Why not.
        why: &'static str,
    },
    /// The question cannot be put as it is.
    Unfit {
        /// The key of the question.
        key: Box<str>,
        /// What is wrong with it.
        reason: String,
    },
    /// One key stands for two questions, or for a question and a saved result.
    KeyUsedTwice {
        /// The key.
        key: Box<str>,
    },
    /// A task of its own asked, instead of the function that the client called.
    Detached {
        /// The key of the question.
        key: Box<str>,
    },
}

impl AskError {
    /// Whether the message is for the model; otherwise the server is at fault.
    pub(crate) fn is_public(&self) -> bool {
        !matches!(self, Self::Unfit { .. } | Self::KeyUsedTwice { .. } | Self::Detached { .. })
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined { key } => write!(f, "the user declined to answer `{key}`"),
            Self::Cancelled { key } => write!(f, "the user cancelled `{key}`"),
            Self::Unsupported { feature } => {
                write!(f, "the client does not support `{feature}`, which is needed here")
            }
            Self::Revision { what } => write!(f, "the client's revision of the protocol has no {what}"),
            Self::Malformed { key, reason } => write!(f, "the answer to `{key}` does not fit: {reason}"),
            Self::Refused { key, code, message } => {
                write!(f, "the client refused `{key}`: {message} ({code})")
            }
            Self::TimedOut { key } => write!(f, "no answer to `{key}` came in time"),
            Self::Disconnected { key } => write!(f, "the client left before it answered `{key}`"),
            Self::Unavailable { why } => write!(f, "the client cannot be asked: {why}"),
            Self::Unfit { key, reason } => write!(f, "`{key}` cannot be asked: {reason}"),
            Self::KeyUsedTwice { key } => {
                write!(
                    f,
                    "the key `{key}` is used twice in one call\ngive each question and each `once` its own"
                )
            }
            Self::Detached { key } => write!(
                f,
                "`{key}` was asked outside of the call\nask in the annotated function itself, not in a spawned task"
            ),
        }
    }
}

impl std::error::Error for AskError {}
