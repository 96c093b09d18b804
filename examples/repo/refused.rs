//! Errors that the model can act on; all other errors are private.

use std::{error::Error, fmt};

/// The reason why a request was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    NoFile(String),
    TooBig { path: String, bytes: u64, most: u64 },
    NotText(String),
    NoOutline(String),
    Pattern(regex::Error),
    Glob(ignore::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile(path) => write!(
                f,
                "no file `{path}` is served\npaths are relative to the root; read `repo:///` for all"
            ),
            Self::TooBig { path, bytes, most } => {
                write!(
                    f,
                    "`{path}` has {bytes} bytes, more than the {most} that are served\nuse `search` to find the part you need"
                )
            }
            Self::NotText(path) => write!(f, "`{path}` is not text\nread it as a resource to get its bytes"),
            Self::NoOutline(path) => {
                write!(
                    f,
                    "`{path}` is in no language that has outlines\nthey exist for Rust, Python, JavaScript, TypeScript, Go and Markdown"
                )
            }
            Self::Pattern(error) => {
                write!(f, "`pattern` is not a regular expression of Rust's `regex` crate: {error}")
            }
            Self::Glob(error) => write!(f, "`include` and `exclude` take globs as .gitignore does: {error}"),
        }
    }
}

impl Error for Refused {}
