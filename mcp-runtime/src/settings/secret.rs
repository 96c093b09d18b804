//! A value that nothing shows: not `Debug`, `Display` or serialization, so no log, error, panic or result.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::core::{
    arguments::{Length, OneOf, Patterned, Ranged, Within},
    secret_texts::REDACTED,
};

/// A secret: a password, a key, a token. `Debug`, `Display` and `Serialize` write `****`; [`expose`](Self::expose) is the
/// only way to the value.
///
/// A [setting](crate::guide::settings) of this type is masked wherever settings are shown, also without the option `secret`. Secrets
/// are not compared with `==`, which takes longer the more of a guess is right.
///
/// ```
/// use mcp_runtime::config::Secret;
///
/// let key = Secret::new("sk-1234".to_owned());
/// assert_eq!(format!("{key} {key:?}"), "**** ****");
/// assert_eq!(key.expose(), "sk-1234");
/// ```
#[derive(Clone, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// The value, which is not hidden any more.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret<String> {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<T> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Secret<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        format!("Secret<{}>", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.insert("writeOnly".to_owned(), true.into());
        schema
    }
}

impl<T: Length> Length for Secret<T> {
    const MIN: &'static str = T::MIN;
    const MAX: &'static str = T::MAX;
    const UNIT: &'static str = T::UNIT;

    fn length(&self) -> Option<usize> {
        self.0.length()
    }
}

impl<T: Patterned> Patterned for Secret<T> {
    fn text(&self) -> Option<&str> {
        self.0.text()
    }
}

impl<M, T: Ranged<M>> Ranged<Within<M>> for Secret<T> {
    type Number = T::Number;
    type Kind = T::Kind;

    fn number(&self) -> Option<T::Number> {
        self.0.number()
    }
}

impl<C, T: OneOf<C>> OneOf<C> for Secret<T> {
    fn is(&self, choice: C) -> bool {
        self.0.is(choice)
    }

    fn absent(&self) -> bool {
        self.0.absent()
    }
}
