//! Decides whether typed decoding alone enforces a schema.
//!
//! `def` compiles a validator only for tools whose schema says more than their Rust types do.

use serde_json::{Map, Value, json};

/// Whether a schema has keywords that decoding into the Rust type does not surely enforce.
///
/// Give it the schema as schemars made it: [`lean`](super::lean) removes the numeric `format`, which alone
/// tells the bounds of `u32` from those that a user set. Without it every bound counts as unenforced.
pub(crate) fn needs_validation(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => false,
        Value::Object(map) => map.iter().any(|(keyword, value)| says_more(map, keyword, value)),
        _ => true,
    }
}

fn says_more(map: &Map<String, Value>, keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" | "required" | "$ref" => false,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
        | "format" | "$comment" | "$schema" | "$id" | "$anchor" => false,
        "properties" | "$defs" => members_say_more(value),
        "items" => needs_validation(value),
        // `deny_unknown_fields` is enforced, the same keyword written by hand is not; they look alike.
        "additionalProperties" => value == &Value::Bool(false) || needs_validation(value),
        _ if keyword.starts_with("x-") => false,
        "minimum" | "maximum" => !is_of_type(map, keyword, value),
        // Unit variants, and tags of others.
        "enum" => {
            !value.as_array().is_some_and(|list| list.iter().all(|one| one.is_string() || one.is_null()))
        }
        "const" => !value.is_string(),
        // Beside `properties` they come from `flatten`, which decodes what `oneOf` refuses.
        "anyOf" | "oneOf" if !map.contains_key("properties") && !map.contains_key("type") => {
            alternatives_say_more(value)
        }
        _ => true,
    }
}

fn members_say_more(value: &Value) -> bool {
    value.as_object().is_none_or(|members| members.values().any(needs_validation))
}

fn alternatives_say_more(value: &Value) -> bool {
    value.as_array().is_none_or(|branches| branches.iter().any(variant_says_more))
}

/// An externally tagged variant is an object of one key, which decoding insists on.
fn variant_says_more(branch: &Value) -> bool {
    let Some(map) = branch.as_object() else { return needs_validation(branch) };
    let only = map.get("properties").and_then(Value::as_object).filter(|members| members.len() == 1);
    let required = map.get("required").and_then(Value::as_array).is_some_and(|names| names.len() == 1);
    if only.is_some() && required && map.get("additionalProperties") == Some(&Value::Bool(false)) {
        let mut rest = map.clone();
        rest.remove("additionalProperties");
        return needs_validation(&Value::Object(rest));
    }
    needs_validation(branch)
}

/// Whether a bound is that of the Rust integer type that `format` names.
fn is_of_type(map: &Map<String, Value>, keyword: &str, bound: &Value) -> bool {
    let Some(format) = map.get("format").and_then(Value::as_str) else { return false };
    let (least, most) = match format {
        "int8" => (json!(i8::MIN), json!(i8::MAX)),
        "int16" => (json!(i16::MIN), json!(i16::MAX)),
        "uint8" => (json!(0), json!(u8::MAX)),
        "uint16" => (json!(0), json!(u16::MAX)),
        "uint32" | "uint64" | "uint128" | "uint" => (json!(0), Value::Null),
        _ => return false,
    };
    *bound == if keyword == "minimum" { least } else { most }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use schemars::{JsonSchema, Schema, schema_for};

    use super::*;

    fn needed(schema: Schema) -> bool {
        needs_validation(&schema.to_value())
    }

    #[derive(JsonSchema)]
    #[schemars(rename_all = "camelCase")]
    #[allow(dead_code)]
    struct Plain {
        name: String,
        small: u8,
        wide: u64,
        ratio: f32,
        maybe: Option<i16>,
        tags: Vec<String>,
        by_name: BTreeMap<String, Kind>,
        next: Option<Box<Plain>>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Kind {
        One,
        Two(i32),
        Three { x: f64, y: Option<f64> },
    }

    #[derive(JsonSchema)]
    #[schemars(tag = "kind", content = "value")]
    #[allow(dead_code)]
    enum Tagged {
        A(i32),
        B,
    }

    #[test]
    fn types_enforce_their_own_shape() {
        assert!(!needed(schema_for!(Plain)));
        assert!(!needed(schema_for!(Kind)));
        assert!(!needed(schema_for!(Tagged)));
        assert!(!needed(schema_for!(Value)));
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Ranged {
        #[schemars(range(min = 0))]
        n: i32,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Deep {
        inner: Vec<Option<Short>>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Short {
        #[schemars(length(max = 3))]
        text: String,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Flat {
        own: i32,
        #[schemars(flatten)]
        kind: Tagged,
    }

    #[derive(JsonSchema)]
    #[schemars(extend("additionalProperties" = false))]
    #[allow(dead_code)]
    struct Closed {
        own: i32,
    }

    #[test]
    fn t12_what_types_do_not_enforce_is_noticed() {
        assert!(needed(schema_for!(Ranged)));
        assert!(needed(schema_for!(Deep)));
        assert!(needed(schema_for!(Flat)));
        assert!(needed(schema_for!(Closed)));
        assert!(needed(schema_for!(HashSet<i32>)));
        assert!(needed(schema_for!([i32; 3])));
        assert!(needed(schema_for!(std::num::NonZeroU32)));
        assert!(needed(schema_for!(std::num::NonZeroI32)));
        assert!(needs_validation(&json!({"type": "integer", "minimum": 0})));
        assert!(needs_validation(
            &json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 200})
        ));
        assert!(needs_validation(&json!({"anyOf": [{"type": "string", "pattern": "a"}, {"type": "null"}]})));
    }
}
