//! The error of starting and running a server: any error, printed for people.

use std::fmt;

/// Why a server could not be built or run.
///
/// Anything that is an error converts into it with `?`. `main` prints its `Debug`, which is the readable report: the
/// message, then the causes.
pub struct Error(Box<dyn std::error::Error + Send + Sync>);

/// The result of starting and running a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.into())
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
