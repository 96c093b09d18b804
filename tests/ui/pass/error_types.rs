//! `#[mcp_error]` on the forms that an error type can have, without warnings.

#![deny(warnings)]
#![allow(dead_code)]

use mcp_runtime::prelude::*;

mod own {
    use std::fmt;

    /// Shadows what generated code must not name.
    #[allow(dead_code)]
    type Option = ();
    #[allow(dead_code)]
    type Result = ();

    #[derive(Debug)]
    #[mcp_runtime::mcp_error]
    pub enum r#Type {
        #[mcp(public)]
        r#Match(u8),
        #[mcp(public)]
        Named { text: &'static str },
        #[mcp(public = false)]
        Unit,
    }

    impl fmt::Display for r#Type {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::r#Match(n) => write!(f, "{n}"),
                Self::Named { text } => f.write_str(text),
                Self::Unit => f.write_str("unit"),
            }
        }
    }

    impl std::error::Error for r#Type {}
}

/// Only public variants remain.
#[mcp_error]
#[derive(Debug, thiserror::Error)]
enum Configured {
    #[mcp(public)]
    #[error("one")]
    One,
    #[cfg(any())]
    #[error("two")]
    Two,
}

#[mcp_error]
#[cfg(any())]
#[derive(Debug, thiserror::Error)]
enum Absent {
    #[mcp(public)]
    #[error("absent")]
    Absent,
}

#[mcp_error]
#[derive(Debug, thiserror::Error)]
#[deprecated]
#[allow(deprecated)]
enum Old {
    #[mcp(public)]
    #[deprecated]
    #[error("old")]
    Old,
    #[error("new")]
    New,
}

macro_rules! error {
    ($name:ident, $variant:ident, $text:literal) => {
        #[mcp_error]
        #[derive(Debug, thiserror::Error)]
        enum $name {
            #[mcp(public)]
            #[error($text)]
            $variant,
        }
    };
}
error!(FromMacro, Failed, "failed");

#[mcp_tool]
fn fail(how: u8) -> Result<(), ToolError> {
    #[mcp_error(public)]
    #[derive(Debug, thiserror::Error)]
    #[error("inside a function")]
    struct Inside(u8);

    match how {
        0 => Err(own::r#Type::r#Match(1))?,
        1 => Err(own::r#Type::Named { text: "named" })?,
        2 => Err(own::r#Type::Unit)?,
        3 => Err(Configured::One)?,
        4 => Err(FromMacro::Failed)?,
        #[allow(deprecated)]
        5 => Err(Old::New)?,
        n => Err(Inside(n))?,
    }
    Ok(())
}

pub(crate) fn main() {
    assert_eq!(fail(0).unwrap_err().to_string(), "1");
    assert_eq!(format!("{:?}", fail(1).unwrap_err()), "Public(\"named\")");
    assert_eq!(format!("{:?}", fail(2).unwrap_err()), "Private(Unit)");
    assert_eq!(format!("{:?}", fail(3).unwrap_err()), "Public(\"one\")");
    assert_eq!(format!("{:?}", fail(4).unwrap_err()), "Public(\"failed\")");
    assert_eq!(format!("{:?}", fail(5).unwrap_err()), "Private(New)");
    assert_eq!(format!("{:?}", fail(6).unwrap_err()), "Public(\"inside a function\")");
}
