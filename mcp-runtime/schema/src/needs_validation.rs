//! Determines whether deserialization into Rust types enforces a schema, or a validator is needed.

use serde_json::{Map, Value, json};

use super::node::TypeSet;

/// Whether a schema has keywords that deserialization into the Rust type may not enforce.
///
/// The schema must be unchanged from schemars: [`minimize`](super::minimize) removes the numeric `format`, which alone
/// distinguishes the bounds of `u32` from those that a user set. Without it, every bound counts as unenforced.
pub fn needs_validation(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => false,
        Value::Object(map) => {
            map.iter().any(|(keyword, value)| keyword_needs_validation(map, keyword, value))
        }
        _ => true,
    }
}

/// A schema of parameters without those that deserialization enforces, which accept any value here, so that a validator
/// looks at the others alone. `generated` is the schema as [`needs_validation`] needs it.
pub fn without_enforced(schema: &Value, generated: &Value) -> Value {
    let definitions = generated.get("$defs").and_then(Value::as_object);
    let mut needing: Vec<&str> = Vec::new();
    // until no definition refers to one that was added
    while let Some((name, _)) = definitions.into_iter().flatten().find(|(name, definition)| {
        !needing.contains(&name.as_str()) && needs_validation_with(definition, &needing)
    }) {
        needing.push(name);
    }
    let mut schema = schema.clone();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let generated = generated.get("properties").and_then(|properties| properties.get(name));
        if generated.is_some_and(|property| !needs_validation_with(property, &needing)) {
            *property = Value::Bool(true);
        }
    }
    let enforced = EnforcedAlternatives { definitions, needing: &needing };
    enforced.reduce(&mut schema, generated);
    schema
}

/// Alternatives that deserialization enforces, beside others.
struct EnforcedAlternatives<'g> {
    definitions: Option<&'g Map<String, Value>>,
    needing: &'g [&'g str],
}

impl EnforcedAlternatives<'_> {
    /// Leaves of alternatives that are arrays or objects only their types, if those that need validation are scalars: none
    /// of the latter is what deserialization takes such a value for.
    fn reduce(&self, schema: &mut Value, generated: &Value) {
        let (Value::Object(schema), Value::Object(generated)) = (schema, generated) else { return };
        for keyword in ["properties", "$defs"] {
            if let (Some(Value::Object(members)), Some(Value::Object(generated))) =
                (schema.get_mut(keyword), generated.get(keyword))
            {
                for (name, member) in members {
                    generated.get(name).into_iter().for_each(|generated| self.reduce(member, generated));
                }
            }
        }
        for keyword in ["items", "additionalProperties"] {
            if let (Some(inner), Some(generated)) = (schema.get_mut(keyword), generated.get(keyword)) {
                self.reduce(inner, generated);
            }
        }
        let is_alone = !schema.contains_key("properties") && !schema.contains_key("type");
        for keyword in ["anyOf", "oneOf"] {
            if let (Some(Value::Array(alternatives)), Some(Value::Array(generated))) =
                (schema.get_mut(keyword), generated.get(keyword))
                // else `null` was removed
                && alternatives.len() == generated.len()
                && is_alone
            {
                self.reduce_alternatives(alternatives, generated);
            }
        }
    }

    fn reduce_alternatives(&self, alternatives: &mut Vec<Value>, generated: &[Value]) {
        let containers = TypeSet::ARRAY.union(TypeSet::OBJECT);
        let is_enforced: Vec<bool> = generated
            .iter()
            .map(|one| {
                let types = self.types(one);
                if variant_needs_validation(one) || refers_to(one, self.needing) {
                    // one that may be an array or an object decides for all
                    return types.intersection(containers) == TypeSet::NONE;
                }
                true
            })
            .collect();
        if is_enforced.contains(&false) {
            return;
        }
        let mut reduced = TypeSet::NONE;
        let mut index = 0;
        alternatives.retain(|_| {
            let types = generated.get(index).map_or(TypeSet::ANY, |one| self.types(one));
            index += 1;
            let is_reduced = containers.contains(types);
            reduced = if is_reduced { reduced.union(types) } else { reduced };
            !is_reduced
        });
        let names: Vec<&str> = [("array", TypeSet::ARRAY), ("object", TypeSet::OBJECT)]
            .into_iter()
            .filter(|(_, types)| reduced.contains(*types))
            .map(|(name, _)| name)
            .collect();
        if !names.is_empty() {
            alternatives.push(json!({ "type": names }));
        }
    }

    /// The types that a schema names, itself or in its definition.
    fn types(&self, schema: &Value) -> TypeSet {
        let target = schema.get("$ref").and_then(Value::as_str);
        let definition = target.and_then(|target| self.definitions?.get(target.strip_prefix("#/$defs/")?));
        let named = definition.unwrap_or(schema).get("type").and_then(TypeSet::parse);
        named.unwrap_or(TypeSet::ANY)
    }
}

/// Whether a schema needs validation, or refers to one of these definitions or to what is not a definition.
fn needs_validation_with(schema: &Value, needing: &[&str]) -> bool {
    needs_validation(schema) || refers_to(schema, needing)
}

fn refers_to(schema: &Value, needing: &[&str]) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(keyword, value)| match (keyword.as_str(), value) {
            ("$ref", Value::String(target)) => {
                target.strip_prefix("#/$defs/").is_none_or(|name| needing.contains(&name))
            }
            _ => refers_to(value, needing),
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, needing)),
        _ => false,
    }
}

fn keyword_needs_validation(map: &Map<String, Value>, keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" | "required" | "$ref" => false,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
        | "format" | "$comment" | "$schema" | "$id" | "$anchor" => false,
        "properties" | "$defs" => any_member_needs_validation(value),
        "items" => needs_validation(value),
        // from `deny_unknown_fields`, which is enforced, or written by hand, which is not: both look the same
        "additionalProperties" => value == &Value::Bool(false) || needs_validation(value),
        _ if keyword.starts_with("x-") => false,
        "minimum" | "maximum" => !is_bound_of_type(map, keyword, value),
        // unit variants, and tags of other variants
        "enum" => {
            !value.as_array().is_some_and(|list| list.iter().all(|one| one.is_string() || one.is_null()))
        }
        "const" => !value.is_string(),
        // next to `properties` they come from `flatten`, which accepts what `oneOf` rejects
        "anyOf" | "oneOf" if !map.contains_key("properties") && !map.contains_key("type") => {
            any_alternative_needs_validation(value)
        }
        _ => true,
    }
}

fn any_member_needs_validation(value: &Value) -> bool {
    value.as_object().is_none_or(|members| members.values().any(needs_validation))
}

fn any_alternative_needs_validation(value: &Value) -> bool {
    value.as_array().is_none_or(|branches| branches.iter().any(variant_needs_validation))
}

/// An externally tagged variant is an object of exactly one key, which deserialization enforces.
fn variant_needs_validation(branch: &Value) -> bool {
    let Some(map) = branch.as_object() else { return needs_validation(branch) };
    let members = map.get("properties").and_then(Value::as_object).filter(|members| members.len() == 1);
    let required = map.get("required").and_then(Value::as_array).is_some_and(|names| names.len() == 1);
    if members.is_some() && required && map.get("additionalProperties") == Some(&Value::Bool(false)) {
        let mut variant = map.clone();
        variant.remove("additionalProperties");
        return needs_validation(&Value::Object(variant));
    }
    needs_validation(branch)
}

/// Whether a bound is the minimum or maximum of the Rust integer type that `format` names.
fn is_bound_of_type(map: &Map<String, Value>, keyword: &str, bound: &Value) -> bool {
    let Some(format) = map.get("format").and_then(Value::as_str) else { return false };
    let (min, max) = match format {
        "int8" => (json!(i8::MIN), json!(i8::MAX)),
        "int16" => (json!(i16::MIN), json!(i16::MAX)),
        "uint8" => (json!(0), json!(u8::MAX)),
        "uint16" => (json!(0), json!(u16::MAX)),
        "uint32" | "uint64" | "uint128" | "uint" => (json!(0), Value::Null),
        _ => return false,
    };
    *bound == if keyword == "minimum" { min } else { max }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use schemars::{JsonSchema, Schema, schema_for};

    use super::*;

    fn generated_needs_validation(schema: Schema) -> bool {
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
    fn deserialization_enforces_schemas_without_constraints() {
        assert!(!generated_needs_validation(schema_for!(Plain)));
        assert!(!generated_needs_validation(schema_for!(Kind)));
        assert!(!generated_needs_validation(schema_for!(Tagged)));
        assert!(!generated_needs_validation(schema_for!(Value)));
    }

    #[test]
    fn alternatives_that_deserialization_enforces_are_told_by_their_type() {
        let reduced = |limited: Value| {
            let generated = json!({
                "properties": { "amounts": { "type": "array", "items": { "$ref": "#/$defs/Amount" } } },
                "$defs": {
                    "Amount": { "anyOf": [
                        limited,
                        { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
                        { "$ref": "#/$defs/List" },
                        { "type": "string" }
                    ] },
                    "List": { "type": "array", "items": { "type": "string" } }
                }
            });
            without_enforced(&generated, &generated)["$defs"]["Amount"]["anyOf"].take()
        };
        let number = json!({ "type": "integer", "maximum": 9 });
        let expected = json!([number, { "type": "string" }, { "type": ["array", "object"] }]);
        assert_eq!(reduced(number), expected);
        // an object with a rule may be what an object or an array is taken for
        for limited in [
            json!({ "type": "object", "properties": { "n": { "type": "integer", "maximum": 9 } } }),
            json!({ "type": "array", "maxItems": 9 }),
            json!({ "maximum": 9 }),
        ] {
            assert_eq!(reduced(limited).as_array().map(Vec::len), Some(4));
        }
    }

    #[test]
    fn alternatives_in_lists_and_maps_are_reduced_as_well() {
        let number = json!({ "type": "integer", "maximum": 9 });
        let amount =
            json!({ "anyOf": [number, { "type": "object", "required": ["name"] }, { "type": "string" }] });
        let generated = json!({ "properties": {
            "list": { "type": "array", "items": amount },
            "map": { "type": "object", "additionalProperties": amount },
        } });
        let checked = without_enforced(&generated, &generated);
        let expected = json!([number, { "type": "string" }, { "type": ["object"] }]);
        for inner in ["/properties/list/items/anyOf", "/properties/map/additionalProperties/anyOf"] {
            assert_eq!(checked.pointer(inner), Some(&expected), "{inner}");
        }
    }

    #[test]
    fn only_parameters_that_need_it_are_validated() {
        let generated = json!({
            "type": "object",
            "properties": {
                "plain": { "type": "string" },
                "kind": { "$ref": "#/$defs/Kind" },
                "limit": { "type": "integer", "minimum": 1 },
                "tree": { "$ref": "#/$defs/Tree" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/Short" } },
                "foreign": { "$ref": "https://example.com/schema" }
            },
            "required": ["plain"],
            "additionalProperties": false,
            "$defs": {
                "Kind": { "oneOf": [{ "const": "one" }, { "const": "two" }] },
                "Tree": { "type": "object", "properties": {
                    "next": { "$ref": "#/$defs/Tree" }, "name": { "$ref": "#/$defs/Short" }
                } },
                "Short": { "type": "string", "maxLength": 9 }
            }
        });
        let checked = without_enforced(&generated, &generated);
        let mut expected = generated;
        expected["properties"]["plain"] = true.into();
        expected["properties"]["kind"] = true.into();
        assert_eq!(checked, expected);
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
    fn constraints_that_types_do_not_enforce_need_validation() {
        assert!(generated_needs_validation(schema_for!(Ranged)));
        assert!(generated_needs_validation(schema_for!(Deep)));
        assert!(generated_needs_validation(schema_for!(Flat)));
        assert!(generated_needs_validation(schema_for!(Closed)));
        assert!(generated_needs_validation(schema_for!(HashSet<i32>)));
        assert!(generated_needs_validation(schema_for!([i32; 3])));
        assert!(generated_needs_validation(schema_for!(std::num::NonZeroU32)));
        assert!(generated_needs_validation(schema_for!(std::num::NonZeroI32)));
        assert!(needs_validation(&json!({"type": "integer", "minimum": 0})));
        assert!(needs_validation(
            &json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 200})
        ));
        assert!(needs_validation(&json!({"anyOf": [{"type": "string", "pattern": "a"}, {"type": "null"}]})));
    }
}
