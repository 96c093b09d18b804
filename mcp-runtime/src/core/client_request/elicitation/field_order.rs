//! The names of a struct's fields in the order of their declaration, which schemas do not keep.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, Visitor},
    forward_to_deserialize_any,
};

/// The wire names of the fields of `T`, including aliases; none if it is not a plain struct.
pub(super) fn list_fields<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    // a derived `Deserialize` passes its fields before it reads a value, where this deserializer always fails
    let _ = T::deserialize(FieldRecorder(&mut names));
    names
}

struct FieldRecorder<'n>(&'n mut Vec<&'static str>);

#[derive(Debug)]
struct NoValue;

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no value")
    }
}

impl std::error::Error for NoValue {}

impl de::Error for NoValue {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for FieldRecorder<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NoValue> {
        self.0.extend(fields);
        Err(NoValue)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Order {
        zebra: String,
        #[serde(rename = "Apple", alias = "pear")]
        apple: u8,
        #[serde(default)]
        mango: bool,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Wrapped(Order);

    #[test]
    fn fields_are_listed_in_the_order_of_their_declaration() {
        let known =
            |names: Vec<&'static str>| names.into_iter().filter(|name| *name != "pear").collect::<Vec<_>>();
        assert_eq!(known(list_fields::<Order>()), ["zebra", "Apple", "mango"]);
        assert_eq!(known(list_fields::<Wrapped>()), ["zebra", "Apple", "mango"]);
        assert!(list_fields::<String>().is_empty());
    }
}
