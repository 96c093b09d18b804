//! Reads a value from JSON text, and whether an object in it has a key twice, in one pass.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The value of a text, and whether an object in it has a key twice; of such a key, the last value counts.
///
/// # Errors
/// The text is not JSON, or something in it has no value.
pub(crate) fn read_value(json: &str) -> Result<(Value, bool), serde_json::Error> {
    let has_duplicates = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = ReadValue(&has_duplicates).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, has_duplicates.get()))
}

#[derive(Clone, Copy)]
struct ReadValue<'c>(&'c Cell<bool>);

impl<'de> DeserializeSeed<'de> for ReadValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.insert(key, members.next_value_seed(self)?).is_some() {
                self.0.set(true);
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_parser_and_duplicates_are_noticed() {
        for (json, has_duplicates) in [
            ("null", false),
            (r#"{"a":[1,-1,1.5,18446744073709551615,1e400,"x\u0041",true,null,{}],"b":{"a":1}}"#, false),
            (r#"[{"a":1,"a":1}]"#, true),
            (r#"{"a":{"b":1,"\u0062":2}}"#, true),
            ("[1", false),
            ("[] 1", false),
            (r#"["\ud800"]"#, false),
        ] {
            let expected = serde_json::from_str::<Value>(json).ok();
            let read = read_value(json).ok();
            assert_eq!(read, expected.map(|value| (value, has_duplicates)), "{json}");
        }
        let deep = "[".repeat(100_000);
        assert!(read_value(&deep).is_err());
    }
}
