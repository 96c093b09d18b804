//! The errors that `build()` reports.

use std::fmt;

use super::item::{ItemSpec, Location};

/// Why a server cannot be built; `build()` reports all of them at once.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BuildError(String);

impl BuildError {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn at(at: Location, text: impl fmt::Display) -> Self {
        Self(format!("{text}\n  --> {at}"))
    }

    /// All errors of one item.
    ///
    /// # Errors
    /// There are some.
    pub(crate) fn check_all(errors: Vec<Self>) -> Result<(), Self> {
        if errors.is_empty() {
            return Ok(());
        }
        let texts: Vec<_> = errors.into_iter().map(|error| error.0).collect();
        Err(Self(texts.join("\n")))
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ItemSpec {
    /// An error in this item, at its location.
    pub(crate) fn build_error(&self, text: impl fmt::Display) -> BuildError {
        match self.location {
            Some(at) => BuildError::at(at, text),
            None => BuildError::new(text.to_string()),
        }
    }
}
