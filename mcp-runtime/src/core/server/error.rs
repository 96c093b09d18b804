//! The error of building and running a server: its kind, and a report that `main` can print.

use std::{error::Error as StdError, fmt, io};

use crate::core::{client_error::causes, error::BoxError};

/// Why a server cannot be built or run.
///
/// It is an error like any other: `?` converts it into `Box<dyn Error>`, `anyhow::Error` and `eyre::Report`, for a `main`
/// that returns one of them. Its `Debug`, which `main` prints, is a readable report: the message, then the causes.
///
/// ```
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let port: u16 = "8080".parse()?;
///     let server = mcp_runtime::server!().info(|info| info.instructions(format!("Runs on {port}."))).build()?;
///     # let _ = server;
///     Ok(())
/// }
/// ```
///
/// A `main` that returns [`mcp_runtime::Result`](crate::Result) can also use `?` on an [`io::Error`], a string and a
/// `Box<dyn Error + Send + Sync>`; [`Error::other`] takes the rest.
pub struct Error {
    kind: ErrorKind,
    error: BoxError,
}

/// The result of building and running a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server cannot be built, or a change at run time cannot be applied; the message lists every problem.
    Build,
    /// The server cannot be served as configured, such as at an address that is in use.
    Serve,
    /// The program's arguments are not a command of [`run`](crate::ServerBuilder::run).
    Usage,
    /// The item that a command of [`run`](crate::ServerBuilder::run) used does not exist, or failed.
    Call,
    /// Settings are missing or wrong; the message lists all of them.
    Settings,
    /// Another operation of the operating system failed; every [`io::Error`] that `?` converts has this kind.
    Io,
    /// Anything else, such as a string that `?` converts.
    Other,
}

impl Error {
    /// Any other error, or a message.
    ///
    /// ```
    /// # fn port() -> mcp_runtime::Result<u16> {
    /// let port = "x".parse().map_err(mcp_runtime::Error::other)?;
    /// # Ok(port)
    /// # }
    /// # assert_eq!(port().unwrap_err().to_string(), "invalid digit found in string");
    /// ```
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        // an error that was boxed on its way keeps its kind
        match error.into().downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self { kind: ErrorKind::Other, error },
        }
    }

    pub(crate) fn build(message: impl Into<BoxError>) -> Self {
        Self { kind: ErrorKind::Build, error: message.into() }
    }

    pub(crate) fn serve(message: impl Into<BoxError>) -> Self {
        Self { kind: ErrorKind::Serve, error: message.into() }
    }

    pub(crate) fn settings(message: impl Into<BoxError>) -> Self {
        Self { kind: ErrorKind::Settings, error: message.into() }
    }

    pub(crate) fn usage(message: impl Into<BoxError>) -> Self {
        Self { kind: ErrorKind::Usage, error: message.into() }
    }

    pub(crate) fn call(message: impl Into<BoxError>) -> Self {
        Self { kind: ErrorKind::Call, error: message.into() }
    }

    /// The same, as the consequence of another error.
    pub(crate) fn caused_by(self, cause: impl Into<BoxError>) -> Self {
        Self { kind: self.kind, error: Box::new(WithCause { error: self.error, cause: cause.into() }) }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        causes(self).try_for_each(|error| write!(f, "\n  caused by: {error}"))
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self { kind: ErrorKind::Io, error: error.into() }
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Self {
        Self::other(message)
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self::other(message)
    }
}

impl From<Box<dyn StdError + Send + Sync>> for Error {
    fn from(error: Box<dyn StdError + Send + Sync>) -> Self {
        Self::other(error)
    }
}

/// An error whose source is another error.
#[derive(Debug)]
struct WithCause {
    error: BoxError,
    cause: BoxError,
}

impl fmt::Display for WithCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StdError for WithCause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_the_message_and_every_cause_once() {
        let cause = Error::serve("cannot listen").caused_by(io::Error::from(io::ErrorKind::AddrInUse));
        let error = Error::build("the server cannot be built").caused_by(cause);
        assert_eq!(error.to_string(), "the server cannot be built");
        assert_eq!(
            format!("{error:?}"),
            "the server cannot be built\n  caused by: cannot listen\n  caused by: address in use"
        );
    }

    #[test]
    fn an_error_that_is_its_own_cause_has_a_report_with_an_end() {
        #[derive(Debug)]
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("endless")
            }
        }
        impl StdError for Endless {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(self)
            }
        }
        let report = format!("{:?}", Error::serve("cannot listen").caused_by(Endless));
        assert!(report.starts_with("cannot listen\n  caused by: endless\n  caused by: endless"));
        assert_eq!(crate::core::client_error::error_chain(&Endless), "endless");
    }

    #[test]
    fn conversions_keep_the_kind() {
        assert_eq!(Error::from(io::Error::other("x")).kind(), ErrorKind::Io);
        assert_eq!(Error::from("x").kind(), ErrorKind::Other);
        let boxed: BoxError = Error::usage("x").into();
        assert_eq!(Error::from(boxed).kind(), ErrorKind::Usage);
    }

    #[test]
    fn a_cause_can_be_found_by_type() {
        let error = Error::serve("cannot listen").caused_by(io::Error::from(io::ErrorKind::AddrInUse));
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::AddrInUse));
    }
}
