//! The names of a struct's fields as they were declared: schemas keep their properties sorted.
//!
//! `form` asks, so that users see the fields in the order that their author chose.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, Visitor},
    forward_to_deserialize_any,
};

/// The wire names of the fields of `T`, aliases among them; none if it is no plain struct.
pub(super) fn declared<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    // A derived `Deserialize` tells its fields before it asks for any value. There is none, so it always fails.
    let _ = T::deserialize(Listener(&mut names));
    names
}

struct Listener<'n>(&'n mut Vec<&'static str>);

#[derive(Debug)]
struct NoValue;

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no value")
    }
}

impl std::error::Error for NoValue {}

impl de::Error for NoValue {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for Listener<'_> {
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
    fn fields_come_as_declared() {
        let known =
            |names: Vec<&'static str>| names.into_iter().filter(|name| *name != "pear").collect::<Vec<_>>();
        assert_eq!(known(declared::<Order>()), ["zebra", "Apple", "mango"]);
        assert_eq!(known(declared::<Wrapped>()), ["zebra", "Apple", "mango"]);
        assert!(declared::<String>().is_empty());
    }
}
