//! What the package of schemas promises for any schema and any text.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

use super::{Target, halves};
use crate::schema::{Validator, duplicate_keys, has_duplicate_keys};

/// A key is found to be duplicated exactly where serde finds it to be.
fn duplicate_keys_are_found(data: &[u8]) {
    /// Whether a reader that keeps all members finds one twice.
    fn has_twice(json: &str) -> bool {
        struct Members(bool);
        impl<'de> serde::Deserialize<'de> for Members {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = Members;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Members, A::Error> {
                        let (mut seen, mut twice) = (BTreeMap::<String, ()>::new(), false);
                        while let Some(key) = map.next_key::<String>()? {
                            twice |= seen.insert(key, ()).is_some();
                            twice |= has_twice(map.next_value::<&RawValue>()?.get());
                        }
                        Ok(Members(twice))
                    }
                }
                deserializer.deserialize_map(Visitor)
            }
        }
        match json.as_bytes().first() {
            Some(b'{') => serde_json::from_str::<Members>(json).is_ok_and(|members| members.0),
            Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(json)
                .is_ok_and(|items| items.iter().any(|item| has_twice(item.get()))),
            _ => false,
        }
    }

    let Ok(text) = std::str::from_utf8(data) else { return };
    // a value, too: half of a surrogate is not a key, and what is nested too deeply is refused elsewhere
    if serde_json::from_str::<Value>(text).is_err() {
        let _for_a_panic = (has_duplicate_keys(text), duplicate_keys(text));
        return;
    }
    let found = has_twice(text.trim_ascii());
    assert_eq!(has_duplicate_keys(text), found);
    assert_eq!(!duplicate_keys(text).is_empty(), found);
}

inventory::submit!(Target { name: "duplicate_keys", run: duplicate_keys_are_found });

/// All ways to validate agree, whatever the schema and the value.
fn ways_to_validate_agree(data: &[u8]) {
    let Some((schema, instance)) = halves(data) else { return };
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let Ok(value) = serde_json::from_str::<Value>(instance) else { return };
    let Ok(validator) = Validator::compile(&schema) else { return };
    if has_duplicate_keys(instance) {
        return;
    }
    let errors = validator.validate(&value);
    let is_valid = validator.is_valid(&value);
    assert_eq!(errors.is_empty(), is_valid, "{value} against {schema}");
    assert_eq!(validator.validate_str(instance).is_ok(), is_valid, "text {instance} against {schema}");
    assert!(is_valid || !validator.accepts(instance), "{instance} is accepted against {schema}");
}

inventory::submit!(Target { name: "schema", run: ways_to_validate_agree });
