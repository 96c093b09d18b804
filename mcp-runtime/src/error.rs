//! Errors of user functions. Their causes are private unless the function makes them public.

use std::{borrow::Cow, fmt};

use crate::{content::Content, context::ClientRequestError, jsonrpc::ProtocolError};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a tool, resource or prompt failed.
///
/// An error made with [`new`](Self::new) is public: the model reads its message. An error that `?` converts into it is
/// private: the client sees `tool 'name' failed`, and the log gets the chain of causes. A [`ProtocolError`] becomes a
/// JSON-RPC error.
///
/// ```
/// use mcp_runtime::ToolError;
///
/// fn order(id: u64, stock: &str) -> Result<u64, ToolError> {
///     if id == 0 {
///         return Err(ToolError::new("order ids start at 1"));
///     }
///     Ok(stock.parse::<u64>()?)
/// }
/// # assert!(order(0, "1").is_err());
/// ```
pub struct ToolError(pub(crate) ToolErrorRepr);

pub(crate) enum ToolErrorRepr {
    Public { message: Cow<'static, str>, content: Vec<Content> },
    Private(BoxError),
    Protocol(ProtocolError),
}

impl ToolError {
    /// A failure whose message is shown to the model.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(ToolErrorRepr::Public { message: message.into(), content: Vec::new() })
    }

    /// A failure whose cause is hidden from the client.
    pub fn private(cause: impl Into<BoxError>) -> Self {
        let cause = match cause.into().downcast::<ProtocolError>() {
            Ok(error) => return Self(ToolErrorRepr::Protocol(*error)),
            Err(cause) => cause,
        };
        // the client already knows how it answered the elicitation
        match cause.downcast_ref::<ClientRequestError>().filter(|error| error.is_public()) {
            Some(error) => Self::new(error.to_string()),
            None => Self(ToolErrorRepr::Private(cause)),
        }
    }

    /// Adds a block after the message.
    ///
    /// Only public failures carry blocks; on any other this does nothing.
    #[must_use]
    pub fn with(mut self, block: impl Into<Content>) -> Self {
        if let ToolErrorRepr::Public { content, .. } = &mut self.0 {
            content.push(block.into());
        }
        self
    }
}

impl<E: Into<BoxError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::private(error)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolErrorRepr::Public { message, .. } => f.debug_tuple("Public").field(message).finish(),
            ToolErrorRepr::Private(cause) => f.debug_tuple("Private").field(cause).finish(),
            ToolErrorRepr::Protocol(error) => f.debug_tuple("Protocol").field(error).finish(),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolErrorRepr::Public { message, .. } => f.write_str(message),
            ToolErrorRepr::Private(cause) => cause.fmt(f),
            ToolErrorRepr::Protocol(error) => error.fmt(f),
        }
    }
}

/// Makes the error of a result public.
pub trait ResultExt<T> {
    /// The same result, whose error message is shown to the model.
    ///
    /// # Errors
    /// The error of `self`, as a public [`ToolError`].
    fn public(self) -> Result<T, ToolError>;
}

impl<T, E: fmt::Display> ResultExt<T> for Result<T, E> {
    fn public(self) -> Result<T, ToolError> {
        self.map_err(|e| ToolError::new(e.to_string()))
    }
}

/// Types that a user's function can fail with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool, resource or prompt",
    label = "not an error type",
    note = "implement `std::error::Error` for it (and `Send + Sync + 'static`), or return `ToolError`"
)]
pub trait IntoFailure {
    /// The failure of the call.
    fn into_failure(self) -> Failure;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> IntoFailure for E {
    fn into_failure(self) -> Failure {
        Failure::Body(self.into())
    }
}

/// Why a call has no result.
#[derive(Debug)]
pub enum Failure {
    /// The user's function failed.
    Body(ToolError),
    /// The arguments are invalid; the text is the report.
    Arguments(String),
    /// A JSON-RPC error.
    Protocol(ProtocolError),
    /// The resource does not exist.
    NotFound,
    /// The function took longer than its limit.
    TimedOut(std::time::Duration),
}

impl Failure {
    /// The JSON-RPC error that the function chose.
    pub(crate) fn protocol(&self) -> Option<&ProtocolError> {
        match self {
            Self::Protocol(error) | Self::Body(ToolError(ToolErrorRepr::Protocol(error))) => Some(error),
            _ => None,
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Body(error)
    }
}
