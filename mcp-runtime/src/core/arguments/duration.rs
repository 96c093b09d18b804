//! Durations as people and models write them, `5s` or `1h 30m`: of parameters and fields that are written `Duration`,
//! `Option<Duration>` or `Vec<Duration>`, and of settings. Under any other name a duration is what serde makes of it.

use std::{marker::PhantomData, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use super::{
    arg::{AnyLiteral, DeclaredResult, TextValue},
    call::{DecodeFn, RawArgument, decode_json, decode_text},
};
use crate::schema::{lists_aliases, truncate, without_position};

/// The text of a duration, as schemas describe it.
pub(crate) const PATTERN: &str = "^([0-9]+(d|h|m|s|ms|us|ns) ?)+$";

/// The longest text of a duration.
const MAX_LENGTH: usize = 64;

/// Reads a duration.
///
/// # Errors
/// The text is not one; the message says what is.
pub(crate) fn read_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text.trim()).ok().filter(|_| text.len() <= MAX_LENGTH).ok_or_else(|| {
        let text = Value::from(truncate(text));
        format!("{text} is not a duration; write numbers with units, such as `5s`, `250ms` or `1h 30m`")
    })
}

/// A duration as text, by [`PATTERN`].
pub(crate) fn duration_text(duration: Duration) -> String {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut left = duration.as_nanos();
    let mut parts = Vec::new();
    for (unit, nanos) in UNITS {
        if left >= nanos {
            parts.push(format!("{}{unit}", left / nanos));
            left %= nanos;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// A duration that is text. What serde makes of one is read, too.
#[derive(Debug)]
pub struct ReadableDuration(Duration);

impl Serialize for ReadableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration_text(self.0))
    }
}

impl<'de> Deserialize<'de> for ReadableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            // prompts and URIs have an object as text
            Value::String(text) if text.starts_with('{') => {
                serde_json::from_str(&text).map_err(|error| without_position(&error))
            }
            Value::String(text) => read_duration(&text),
            // as reports quote numbers
            Value::Number(number) => {
                read_duration(&number.to_string()).map_err(|message| message.replace('"', "`"))
            }
            other => Duration::deserialize(other).map_err(|error| error.to_string()),
        };
        read.map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for ReadableDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReadableDuration".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if lists_aliases(generator) {
            // reading a number says that the unit is missing
            return json_schema!({ "type": ["string", "number", "object"] });
        }
        json_schema!({ "type": "string", "pattern": PATTERN, "maxLength": MAX_LENGTH })
    }
}

/// Types whose durations are text where a parameter or a field is written so.
pub trait HasDurations: Sized + 'static {
    /// The same with [`ReadableDuration`]s.
    type Text: Serialize + DeserializeOwned + JsonSchema + 'static;
    /// The value.
    fn from_text(text: Self::Text) -> Self;
    /// The value with durations that are written as text.
    fn to_text(&self) -> Self::Text;
}

impl HasDurations for Duration {
    type Text = ReadableDuration;
    fn from_text(text: ReadableDuration) -> Self {
        text.0
    }
    fn to_text(&self) -> ReadableDuration {
        ReadableDuration(*self)
    }
}

impl HasDurations for Option<Duration> {
    type Text = Option<ReadableDuration>;
    fn from_text(text: Self::Text) -> Self {
        text.map(Duration::from_text)
    }
    fn to_text(&self) -> Self::Text {
        self.as_ref().map(Duration::to_text)
    }
}

impl HasDurations for Vec<Duration> {
    type Text = Vec<ReadableDuration>;
    fn from_text(text: Self::Text) -> Self {
        text.into_iter().map(Duration::from_text).collect()
    }
    fn to_text(&self) -> Self::Text {
        self.iter().map(Duration::to_text).collect()
    }
}

/// How a type that is written `Duration`, or as an `Option` or a `Vec` of one, is read and written: the inherent items, of
/// those of the standard library, take precedence over those of [`AnyAsText`].
#[derive(Debug)]
pub struct AsText<T>(PhantomData<T>);

/// How an argument is read and published instead of by its type's own impls.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentForm<T> {
    pub(super) decode: DecodeFn<T>,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) publish: fn(&T) -> serde_json::Result<Value>,
}

impl<T: HasDurations> AsText<T> {
    /// How arguments are read and published.
    pub const FORM: Option<ArgumentForm<T>> = Some(ArgumentForm {
        decode: |raw| {
            let text = match raw {
                RawArgument::Json(_) => decode_json::<T::Text>(raw),
                _ => decode_text::<T::Text>(raw),
            };
            text.map(T::from_text)
        },
        schema: Self::field_schema,
        publish: |value| serde_json::to_value(value.to_text()),
    });

    /// Writes a field.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn write_field<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.to_text().serialize(serializer)
    }

    /// Reads a field.
    ///
    /// # Errors
    /// It is not a duration.
    pub fn read_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::Text::deserialize(deserializer).map(T::from_text)
    }

    /// The schema of a field.
    pub fn field_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T::Text>()
    }
}

/// [`AsText`] for other types of that name: their own impls.
pub trait AnyAsText<T> {
    /// None.
    const FORM: Option<ArgumentForm<T>> = None;

    /// Writes a field.
    ///
    /// # Errors
    /// Those of the type.
    fn write_field<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize,
    {
        value.serialize(serializer)
    }

    /// Reads a field.
    ///
    /// # Errors
    /// Those of the type.
    fn read_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
    where
        T: Deserialize<'de>,
    {
        T::deserialize(deserializer)
    }

    /// The schema of a field.
    fn field_schema(generator: &mut SchemaGenerator) -> Schema
    where
        T: JsonSchema,
    {
        generator.subschema_for::<T>()
    }
}
impl<T> AnyAsText<T> for AsText<T> {}

/// A string literal that is a duration, and its milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct DurationText(pub &'static str, pub u64);

impl AnyLiteral for DurationText {
    fn text(self) -> &'static str {
        self.0
    }
}

/// String literals that are durations.
#[diagnostic::on_unimplemented(
    message = "this text is not a duration",
    label = "not a duration",
    note = "write a whole number above zero and a unit: `\"250ms\"`, `\"5s\"`, `\"2m\"`, `\"1h\"`; or a value, as in `Duration::from_secs(90)`"
)]
pub trait DurationLiteral {
    /// The duration.
    fn duration(self) -> Duration;
}

#[diagnostic::do_not_recommend]
impl DurationLiteral for DurationText {
    fn duration(self) -> Duration {
        Duration::from_millis(self.1)
    }
}

impl TextValue<Duration> {
    /// The duration.
    ///
    /// # Errors
    /// Never fails; the type is that of other values.
    pub fn value(literal: impl DurationLiteral) -> DeclaredResult<Duration> {
        Ok(literal.duration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_duration_is_read_as_that_duration() {
        let pattern = regex_lite::Regex::new(PATTERN).expect("a pattern");
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_secs(5), "5s"),
            (Duration::from_millis(90_250), "1m 30s 250ms"),
            (Duration::new(3_456_000, 1), "40d 1ns"),
            (Duration::MAX, "213503982334601d 7h 15s 999ms 999us 999ns"),
        ] {
            assert_eq!(duration_text(duration), text);
            assert_eq!(read_duration(text), Ok(duration));
            assert!(pattern.is_match(text) && text.len() <= MAX_LENGTH, "{text}");
        }
    }
}
