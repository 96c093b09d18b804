//! Where the next page of a tool's results begins: an argument that the server has sealed itself, and a client only sends
//! back. Dispatch opens it, so that functions see the position.

use std::{any::TypeId, borrow::Cow, fmt, sync::LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, Error as _},
};

use crate::core::{crypto::random_id, error::ToolError};

/// Where a page begins, as the function that returned the page before has said it: an argument of a tool, usually
/// `cursor: Option<Cursor>`.
///
/// Clients get it as the `nextCursor` of a [`Page`](crate::tool::Page) and send it back. It is sealed for the caller, the
/// tool and its other arguments; anything else is refused before the function runs. It does not expire, and opens on
/// every replica with the same [keys](crate::config::Stores::keys).
#[derive(Clone, PartialEq, Eq)]
pub struct Cursor(CursorText);

#[derive(Clone, PartialEq, Eq)]
enum CursorText {
    /// The position as JSON text, as the server's function has it.
    Position(String),
    /// The sealed text, as a client has it.
    #[cfg_attr(not(feature = "client"), expect(dead_code, reason = "clients read it from results"))]
    Sealed(String),
}

impl Cursor {
    /// A cursor at that position, for unit tests of functions.
    ///
    /// # Errors
    /// `position` has no JSON form.
    pub fn new<P: Serialize + ?Sized>(position: &P) -> Result<Self, serde_json::Error> {
        serde_json::to_string(position).map(CursorText::Position).map(Self)
    }

    /// The position.
    ///
    /// # Errors
    /// It is not a `P`, as after an update of the server that has changed the type; the message asks the client to begin
    /// with the first page. A client's cursor is sealed, and has no position.
    pub fn position<P: DeserializeOwned>(&self) -> Result<P, ToolError> {
        match &self.0 {
            CursorText::Position(json) => serde_json::from_str(json).map_err(|_| ToolError::new(OUTDATED)),
            CursorText::Sealed(_) => {
                Err(ToolError::new("the cursor is sealed: only its server knows the position"))
            }
        }
    }

    /// The cursor that a client has got.
    #[cfg(feature = "client")]
    pub(crate) fn sealed(text: String) -> Self {
        Self(CursorText::Sealed(text))
    }

    /// The text of an opened cursor, as the function's arguments have it.
    pub(crate) fn opened(position: &str) -> String {
        format!("{}{position}", *OPENED)
    }

    /// Whether arguments of this type are cursors.
    pub(super) fn is(type_of_argument: TypeId) -> bool {
        [TypeId::of::<Self>(), TypeId::of::<Option<Self>>()].contains(&type_of_argument)
    }
}

const OUTDATED: &str =
    "the cursor is of an earlier version of this tool\nleave it out to begin with the first page";

/// The position is the server's; clients see it sealed.
impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursor(..)")
    }
}

/// A mark that distinguishes an opened cursor from a text that a client has made up, wherever it is in the arguments.
static OPENED: LazyLock<String> = LazyLock::new(|| {
    // without randomness no cursor was sealed either, and an empty mark is refused
    random_id().unwrap_or_default()
});

/// Reads an opened cursor, and no other.
impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(OPENED.as_str()) {
            Some(position) if !OPENED.is_empty() => Ok(Self(CursorText::Position(position.to_owned()))),
            _ => Err(D::Error::custom(
                "not a cursor of the server; a tool takes a cursor as a separate parameter",
            )),
        }
    }
}

/// Sends a cursor back to the server that has sealed it, as an argument of a typed call.
impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            CursorText::Sealed(text) => serializer.serialize_str(text),
            CursorText::Position(_) => {
                Err(serde::ser::Error::custom("only a cursor of a page that the client has got can be sent"))
            }
        }
    }
}

impl JsonSchema for Cursor {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "The `nextCursor` of a result; absent for the first page"
        })
    }
}
