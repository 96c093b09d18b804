//! Errors of user functions: text that a function writes is public, an error that it propagates is private.

use std::{any::TypeId, borrow::Cow, error::Error, fmt, sync::Arc, time::Duration};

use crate::core::{
    admission::LimitReached, content::Content, context::ClientRequestError, jsonrpc::ProtocolError,
    protocol::URL_ELICITATION_REQUIRED, reason::Reason,
};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why a tool, resource or prompt failed.
/// Messages that you write are shown; errors that you propagate are not. Text, given to [`new`](Self::new)
/// or converted from a string, is public: the model reads it. Any other error that `?` converts is private: the client
/// sees `tool 'name' failed`, and the log gets the chain of causes. A [`ProtocolError`] becomes a JSON-RPC error.
///
/// ```
/// use mcp_runtime::ToolError;
///
/// fn order(id: u64, stock: &str) -> Result<u64, ToolError> {
///     if id == 0 {
///         return Err("order ids start at 1".into());
///     }
///     // private: `parse` wrote the message, not this function
///     Ok(stock.parse::<u64>()?)
/// }
/// # assert!(order(0, "1").is_err());
/// ```
///
/// `#[mcp_error]` makes variants of an error enum public, and [`public_context`](ResultExt::public_context) adds a public
/// text to a private error. `.map_err(|e| e.to_string())?` turns any error into text, which is public.
pub struct ToolError(pub(crate) Failure);

/// The ways in which a call fails: the content of a [`ToolError`].
#[derive(Debug)]
pub enum Failure {
    /// A message for the model.
    Public {
        /// The text.
        message: Cow<'static, str>,
        /// Blocks after it.
        content: Vec<Content>,
        /// For the log.
        cause: Option<Box<dyn Error + Send + Sync>>,
    },
    /// An error that the client does not see.
    Private(Box<dyn Error + Send + Sync>),
    /// A JSON-RPC error.
    Protocol(ProtocolError),
    /// The JSON-RPC error that lists URLs which the user must visit first.
    VisitsRequired(ProtocolError),
    /// The resource does not exist.
    NotFound,
    /// The arguments are invalid; the text is the report.
    Arguments(String),
    /// The function took longer than its limit.
    TimedOut(Duration),
    /// The caller has reached a limit, whose text follows the item's name.
    Limited(ReachedLimit),
}

/// A limit that a caller has reached.
#[derive(Debug)]
pub struct ReachedLimit(LimitReached);

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Text that can be the message of a [`ToolError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not text",
    note = "for an error whose message the model may read, write `.public()?` (`mcp_runtime::ResultExt`)",
    note = "for one that stays private, write `?`, or `ToolError::private(error)`"
)]
pub trait ErrorText {
    /// The text.
    fn into_message(self) -> Cow<'static, str>;
}

#[diagnostic::do_not_recommend]
impl<T: Into<String>> ErrorText for T {
    fn into_message(self) -> Cow<'static, str> {
        Cow::Owned(self.into())
    }
}

impl ToolError {
    /// A failure whose message is shown to the model.
    pub fn new<M: ErrorText>(message: M) -> Self {
        Self(Failure::Public { message: message.into_message(), content: Vec::new(), cause: None })
    }

    /// A failure whose cause, an error or text, is hidden from the client.
    pub fn private(cause: impl Into<BoxError>) -> Self {
        Self(Failure::private(cause))
    }

    /// The failure of a resource that does not exist, as if the function had returned `None`: `-32602`, or `-32002` before
    /// 2026-07-28, with the URI as data.
    ///
    /// A tool or a prompt reports that it found nothing.
    #[must_use]
    pub fn not_found() -> Self {
        Self(Failure::NotFound)
    }

    /// The failure of a function that propagates `error`.
    pub(crate) fn propagate(error: BoxError) -> Self {
        let error = match error.downcast::<ProtocolError>() {
            Ok(error) if error.code == URL_ELICITATION_REQUIRED => {
                return Self(Failure::VisitsRequired(*error));
            }
            Ok(error) => return Self(Failure::Protocol(*error)),
            Err(error) => error,
        };
        // the client already knows how it answered the elicitation
        let is_public = error.downcast_ref::<ClientRequestError>().is_some_and(ClientRequestError::is_public)
            || inventory::iter::<ErrorVisibility>().any(|visibility| (visibility.is_public)(&*error));
        if is_public { Self::new(error.to_string()) } else { Self(Failure::Private(error)) }
    }

    /// The text that the client sees, if the failure is public or its arguments are invalid.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match &self.0 {
            Failure::Public { message, .. } => Some(message),
            Failure::Arguments(report) => Some(report),
            _ => None,
        }
    }

    /// The error that is hidden from the client, of a private failure or of one with a
    /// [public context](ResultExt::public_context).
    ///
    /// ```
    /// use mcp_runtime::ToolError;
    ///
    /// let error: ToolError = std::io::Error::from(std::io::ErrorKind::TimedOut).into();
    /// let cause = error.cause().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    /// assert!(cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut));
    /// ```
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Failure::Private(cause) => Some(&**cause),
            Failure::Public { cause, .. } => cause.as_deref().map(|cause| cause as _),
            _ => None,
        }
    }

    /// The JSON-RPC error, if the failure is one.
    #[must_use]
    pub fn protocol_error(&self) -> Option<&ProtocolError> {
        self.0.protocol()
    }

    /// Whether the arguments are invalid, so that the function did not run.
    #[must_use]
    pub fn is_invalid_arguments(&self) -> bool {
        matches!(self.0, Failure::Arguments(_))
    }

    /// Whether the function took longer than its limit.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0, Failure::TimedOut(_))
    }

    /// Whether the resource does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.0, Failure::NotFound)
    }

    /// Adds a block after the message.
    /// Only public failures have blocks; on any other failure this has no effect.
    #[must_use]
    pub fn with(mut self, block: impl Into<Content>) -> Self {
        if let Failure::Public { content, .. } = &mut self.0 {
            content.push(block.into());
        }
        self
    }
}

/// A private error that is not the function's own.
#[derive(Debug)]
struct ReasonedError {
    reason: Reason,
    text: String,
}

impl fmt::Display for ReasonedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ReasonedError {}

/// Text is public, any other error is private.
// rustc shows the name of the parameter to those who implement it for an error of their own
impl<EveryError: Into<BoxError>> From<EveryError> for ToolError {
    fn from(error: EveryError) -> Self {
        let error = error.into();
        if is_text::<EveryError>() { Self::new(error.to_string()) } else { Self::propagate(error) }
    }
}

/// Whether `E` is one of the string types that convert into a boxed error, with any lifetime.
fn is_text<E>() -> bool {
    // `TypeId::of` would require `E: 'static`, which a `&str` with another lifetime is not
    let id = typeid::of::<E>();
    [TypeId::of::<&str>(), TypeId::of::<String>(), TypeId::of::<Cow<'_, str>>()].contains(&id)
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Failure::Public { message, .. } => f.debug_tuple("Public").field(message).finish(),
            Failure::Private(cause) => f.debug_tuple("Private").field(cause).finish(),
            Failure::Protocol(error) | Failure::VisitsRequired(error) => {
                f.debug_tuple("Protocol").field(error).finish()
            }
            Failure::NotFound => f.write_str("NotFound"),
            Failure::Arguments(report) => f.debug_tuple("Arguments").field(report).finish(),
            Failure::TimedOut(limit) => f.debug_tuple("TimedOut").field(limit).finish(),
            Failure::Limited(limit) => f.debug_tuple("Limited").field(limit).finish(),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Failure::Public { message, .. } => f.write_str(message),
            Failure::Private(cause) => cause.fmt(f),
            Failure::Protocol(error) | Failure::VisitsRequired(error) => error.fmt(f),
            Failure::NotFound => f.write_str("not found"),
            Failure::Arguments(report) => f.write_str(report),
            Failure::TimedOut(limit) => write!(f, "took longer than its limit of {limit:?}"),
            Failure::Limited(limit) => limit.fmt(f),
        }
    }
}

/// Error types with public values; implemented by `#[mcp_error]`.
///
/// `Error` is not a supertrait: a type that is not an error is reported where it is used as one, and only there.
pub trait PublicError: Sized + 'static {
    /// Whether the model may read the message of this value.
    fn is_public(&self) -> bool;
}

/// A registered [`PublicError`], without its type.
///
/// The type of an error in a box can only be compared with those that are known.
#[derive(Debug)]
pub struct ErrorVisibility {
    is_public: fn(&(dyn Error + 'static)) -> bool,
}

inventory::collect!(ErrorVisibility);

/// The registration of `E`: its inherent constant takes precedence over that of [`NotAnError`].
#[derive(Debug)]
pub struct RegisteredError<E>(std::marker::PhantomData<E>);

impl<E: Error + PublicError> RegisteredError<E> {
    /// The registration.
    pub const VISIBILITY: ErrorVisibility = ErrorVisibility { is_public: is_public::<E> };
}

/// Takes the place of the registration of a type that does not implement `std::error::Error`.
pub trait NotAnError {
    /// Says of no error that it is public.
    const VISIBILITY: ErrorVisibility = ErrorVisibility { is_public: |_| false };
}
impl<E> NotAnError for RegisteredError<E> {}

/// Whether it is a public `E`, possibly in a further pointer, which is an error too.
fn is_public<E: Error + PublicError>(error: &(dyn Error + 'static)) -> bool {
    let boxed = || error.downcast_ref::<Box<E>>().map(|error| &**error);
    let shared = || error.downcast_ref::<Arc<E>>().map(|error| &**error);
    error.downcast_ref::<E>().or_else(boxed).or_else(shared).is_some_and(E::is_public)
}

/// Makes the error of a result public.
pub trait ResultExt<T> {
    /// The same result, whose error message is shown to the model.
    ///
    /// # Errors
    /// The error of `self`, as a public [`ToolError`].
    fn public(self) -> Result<T, ToolError>;

    /// The same result, whose error is hidden from the client: the model reads `context`, and the log has the error, as
    /// `{:#}` writes it.
    ///
    /// ```
    /// use mcp_runtime::{ResultExt, ToolError};
    ///
    /// fn order(id: &str) -> Result<u64, ToolError> {
    ///     id.parse::<u64>().public_context("an order id is a number, such as 17")
    /// }
    /// let error = order("x").expect_err("not a number");
    /// assert_eq!(error.message(), Some("an order id is a number, such as 17"));
    /// assert!(error.cause().is_some());
    /// ```
    ///
    /// # Errors
    /// The error of `self`, as a [`ToolError`] with this message.
    fn public_context<M: ErrorText>(self, context: M) -> Result<T, ToolError>;
}

impl<T, E: fmt::Display> ResultExt<T> for Result<T, E> {
    fn public(self) -> Result<T, ToolError> {
        self.map_err(|e| ToolError::new(e.to_string()))
    }

    fn public_context<M: ErrorText>(self, context: M) -> Result<T, ToolError> {
        self.map_err(|e| {
            let cause = Some(format!("{e:#}").into());
            ToolError(Failure::Public { message: context.into_message(), content: Vec::new(), cause })
        })
    }
}

/// Types that a user's function can fail with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool, resource or prompt",
    label = "not an error type",
    note = "implement `std::error::Error` for it (and `Send + Sync + 'static`), or return `ToolError`",
    note = "a boxed error is a `Box<dyn std::error::Error + Send + Sync>`"
)]
#[doc(hidden)]
pub trait IntoFailure {
    /// The failure of the call.
    fn into_failure(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> IntoFailure for E {
    fn into_failure(self) -> ToolError {
        self.into()
    }
}

impl Failure {
    /// A failure whose cause, an error or text, is hidden from the client.
    pub(crate) fn private(cause: impl Into<BoxError>) -> Self {
        Self::Private(cause.into())
    }

    /// A failure that is hidden from the client, and that something around the function has found.
    pub(crate) fn because(reason: Reason, text: impl Into<String>) -> Self {
        Self::private(ReasonedError { reason, text: text.into() })
    }

    /// The same with a message for the model; the rest is for the log.
    pub(crate) fn shown_as(self, message: String) -> Self {
        match self {
            Self::Private(cause) => {
                Self::Public { message: message.into(), content: Vec::new(), cause: Some(cause) }
            }
            other => other,
        }
    }

    /// The failure of a caller that has reached a limit.
    pub(crate) fn limited(reached: LimitReached) -> Self {
        Self::Limited(ReachedLimit(reached))
    }

    /// Why the call failed, for operators; `None` if the function has said it.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Public { cause, .. } => {
                cause.as_ref()?.downcast_ref::<ReasonedError>().map(|error| error.reason)
            }
            Self::Protocol(_) | Self::VisitsRequired(_) => None,
            Self::Private(cause) => {
                Some(cause.downcast_ref::<ReasonedError>().map_or(Reason::Private, |error| error.reason))
            }
            Self::NotFound => Some(Reason::NotFound),
            Self::Arguments(_) => Some(Reason::InvalidArguments),
            Self::TimedOut(_) => Some(Reason::Timeout),
            Self::Limited(ReachedLimit(limit)) => Some(limit.reason()),
        }
    }

    /// The JSON-RPC error that the function chose.
    pub(crate) fn protocol(&self) -> Option<&ProtocolError> {
        match self {
            Self::Protocol(error) | Self::VisitsRequired(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        error.0
    }
}
