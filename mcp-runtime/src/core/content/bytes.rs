//! Bytes, which are base64 wherever they are sent: they are read as models write base64, and written as the standard has it.

use std::{borrow::Cow, fmt};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

/// Bytes, sent as base64: the `blob` of a resource, an argument, or a field of one or of a result.
///
/// Its schema is `{"type": "string", "contentEncoding": "base64"}`. It is also read without padding, in lines, in the alphabet of
/// URLs, and as a `data:` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl<T: Into<Vec<u8>>> From<T> for Bytes {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

impl Bytes {
    /// The bytes of a text in base64; `None` if it is not.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let text = match text.trim().strip_prefix("data:") {
            Some(url) => url.split_once(";base64,")?.1,
            None => text,
        };
        let letters = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        });
        let letters: Vec<u8> = letters.collect();
        let end = letters.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1);
        STANDARD_NO_PAD.decode(letters.get(..end)?).ok().map(Self)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
                Bytes::from_base64(text).ok_or_else(|| E::custom("is not base64"))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

impl JsonSchema for Bytes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "contentEncoding": "base64" })
    }
}
