//! Deserializes typed values from strings, since prompts and URIs carry nothing else, and from an absent value, so that
//! optional parameters are recognised without inspecting their type's name.

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor, value::SeqDeserializer},
    forward_to_deserialize_any,
};
use serde_json::Error;

/// The value of an absent parameter, for types that have one (`Option`, and aliases of it).
///
/// # Errors
/// The type has none.
pub(super) fn missing<T: DeserializeOwned>() -> Result<T, Error> {
    T::deserialize(AbsentDeserializer)
}

struct AbsentDeserializer;

impl<'de> Deserializer<'de> for AbsentDeserializer {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("is missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Deserializes `T` from a string: text as it is, numbers and bools by parsing, lists and objects as JSON. A list has these
/// parts, or without any those between commas.
pub(super) fn from_text<T: DeserializeOwned>(text: &str, parts: &[String]) -> Result<T, Error> {
    T::deserialize(TextDeserializer(text, parts))
}

/// Deserializes `T` from the parts of an exploded variable; if they are the values of a variable that a query has more than
/// once, only a list takes more than one.
pub(super) fn from_list<T: DeserializeOwned>(parts: &[String], are_repeated: bool) -> Result<T, Error> {
    T::deserialize(ListDeserializer { parts, are_repeated })
}

#[derive(Clone, Copy)]
struct TextDeserializer<'a>(&'a str, &'a [String]);

impl<'de> IntoDeserializer<'de, Error> for TextDeserializer<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// With a last part of a row, that function decides whether a parsed value is one that JSON has, too.
macro_rules! deserialize_parsed {
    ($($method:ident $visit:ident $t:ty, $what:literal $(, $is_json:path)?;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.trim().parse::<$t>() {
                Ok(value) $(if $is_json(value))? => visitor.$visit(value),
                _ => Err(Error::custom(format!(concat!("expected ", $what, ", got `{}`"), self.0))),
            }
        }
    )*};
}

impl TextDeserializer<'_> {
    fn json(self) -> Result<serde_json::Value, Error> {
        serde_json::from_str(self.0)
            .map_err(|e| Error::custom(format!("expected JSON, got `{}`: {e}", self.0)))
    }
}

impl<'de> Deserializer<'de> for TextDeserializer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.0)
    }

    deserialize_parsed! {
        deserialize_bool visit_bool bool, "`true` or `false`";
        deserialize_i8 visit_i8 i8, "an integer from -128 to 127";
        deserialize_i16 visit_i16 i16, "an integer from -32768 to 32767";
        deserialize_i32 visit_i32 i32, "a 32-bit integer";
        deserialize_i64 visit_i64 i64, "a 64-bit integer";
        deserialize_i128 visit_i128 i128, "a 128-bit integer";
        deserialize_u8 visit_u8 u8, "an integer from 0 to 255";
        deserialize_u16 visit_u16 u16, "an integer from 0 to 65535";
        deserialize_u32 visit_u32 u32, "a 32-bit integer of 0 or more";
        deserialize_u64 visit_u64 u64, "a 64-bit integer of 0 or more";
        deserialize_u128 visit_u128 u128, "a 128-bit integer of 0 or more";
        deserialize_f32 visit_f32 f32, "a number", f32::is_finite;
        deserialize_f64 visit_f64 f64, "a number", f64::is_finite;
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut chars = self.0.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => visitor.visit_char(c),
            _ => Err(Error::custom(format!("expected one character, got `{}`", self.0))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.trim_start().starts_with('{') {
            return self.json()?.deserialize_enum(name, variants, visitor);
        }
        visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(self.0))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.trim_start().starts_with('[') {
            return self.json()?.deserialize_seq(visitor);
        }
        if !self.1.is_empty() {
            return ListDeserializer { parts: self.1, are_repeated: false }.deserialize_any(visitor);
        }
        // people type `a,b,c`
        let parts = self.0.split(',').map(|part| TextDeserializer(part.trim(), &[]));
        visitor.visit_seq(SeqDeserializer::new(parts))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.json()?.deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! { str string bytes byte_buf unit_struct tuple_struct identifier ignored_any }
}

struct ListDeserializer<'a> {
    parts: &'a [String],
    are_repeated: bool,
}

/// What is not a list takes one value.
macro_rules! deserialize_one {
    ($($method:ident($($argument:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $(_: $argument,)* visitor: V) -> Result<V::Value, Error> {
            self.check_one()?.deserialize_any(visitor)
        }
    )*};
}

impl ListDeserializer<'_> {
    fn check_one(self) -> Result<Self, Error> {
        if self.are_repeated { Err(Error::custom("was given more than once")) } else { Ok(self) }
    }
}

impl<'de> Deserializer<'de> for ListDeserializer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let parts = self.parts.iter().map(|part| TextDeserializer(part, &[]));
        visitor.visit_seq(SeqDeserializer::new(parts))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.check_one()?.parts.join("/"))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    deserialize_one! {
        deserialize_bool() deserialize_char()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_identifier() deserialize_unit() deserialize_map()
        deserialize_unit_struct(&'static str) deserialize_enum(&'static str, &'static [&'static str])
        deserialize_struct(&'static str, &'static [&'static str])
    }

    forward_to_deserialize_any! { bytes byte_buf seq tuple tuple_struct ignored_any }
}
