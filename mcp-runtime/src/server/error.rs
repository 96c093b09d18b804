//! The error of starting and running a server: any error, printed for people.

use std::fmt;

use crate::error::ToolError;

/// Why a server could not be built or run.
///
/// Anything that is an error converts into it with `?`. `main` prints its `Debug`, which is the readable report: the
/// message, then the causes. It converts into a `Box<dyn std::error::Error>`, for a `main` that gives that:
///
/// ```
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let server = mcp_runtime::server!().build()?;
///     # let _ = server;
///     Ok(())
/// }
/// ```
pub struct Error(Box<dyn std::error::Error + Send + Sync>);

/// The result of starting and running a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// For a `main` that gives a `Box<dyn Error>`; what it prints stays readable.
impl From<Error> for Box<dyn std::error::Error> {
    fn from(error: Error) -> Self {
        Box::new(Report(error))
    }
}

/// An [`Error`] as an error like others.
struct Report(Error);

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Report {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.0.source()
    }
}

impl Error {
    /// The error that was converted into this one.
    pub(crate) fn into_cause(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, "\n  caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Propagated like any other error, so that functions can use set-up code, which returns [`crate::Result`].
impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::propagate(error.into_cause())
    }
}
