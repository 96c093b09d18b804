//! The part of a foreign schema that can be enforced. A schema that was written for another program may have keywords of
//! another dialect, or patterns of another engine: values are checked against the rest of it, never against more.

use serde_json::{Map, Value, json};

use super::{
    compile::{compile, is_supported},
    published_values::conform_published_values,
    walk,
};

/// Keywords that refuse what their subschema accepts, so that they cannot be enforced if a part of it is not.
const INVERTED: [&str; 3] = ["not", "if", "contains"];

/// Keywords that apply a schema to the same value.
const APPLICATORS: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas"];

/// The enforceable part of a schema, which compiles.
pub(crate) fn enforceable_part(foreign: &Value) -> Value {
    let mut schema = foreign.clone();
    translate(&mut schema);
    while let Err(unsupported) = compile(&schema) {
        let is_removed = remove_keyword(&mut schema, &unsupported.pointer, &unsupported.keyword)
            // one of these applies the schema to itself
            || APPLICATORS.iter().any(|keyword| remove_keyword(&mut schema, &unsupported.pointer, keyword));
        if !is_removed {
            return json!({});
        }
        weaken_ancestors(&mut schema, &unsupported.pointer);
    }
    while let Err(invalid) = conform_published_values(&mut schema) {
        if !remove_keyword(&mut schema, &invalid.pointer, invalid.keyword) {
            break;
        }
    }
    schema
}

/// Translates OpenAPI's `nullable`, and removes keywords that no part of the validator knows.
fn translate(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| translate(child));
    if map.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(Value::String(name)) = map.get("type") {
            let types = json!([name, "null"]);
            map.insert("type".to_owned(), types);
        }
        if let Some(Value::Array(choices)) = map.get_mut("enum")
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
    }
    // older dialects ignore what is beside a reference
    let is_reference = map.contains_key("$ref");
    map.retain(|keyword, _| {
        let is_kept =
            !is_reference || matches!(keyword.as_str(), "$ref" | "$defs" | "definitions" | "default");
        is_kept && is_supported(keyword) && !matches!(keyword.as_str(), "$schema" | "$id")
    });
}

/// Removes one keyword; a subschema that is none, which has no keyword, becomes `true`.
fn remove_keyword(schema: &mut Value, pointer: &str, keyword: &str) -> bool {
    let Some(place) = schema.pointer_mut(pointer) else { return false };
    if keyword.is_empty() {
        *place = Value::Bool(true);
        return true;
    }
    let Some(map) = place.as_object_mut() else { return false };
    if matches!(keyword, "properties" | "patternProperties") {
        // these apply to what the removed keyword does not describe
        map.remove("additionalProperties");
        map.remove("unevaluatedProperties");
    }
    map.remove(keyword).is_some()
}

/// Removes the keywords above a place that would refuse more now that the place accepts more.
fn weaken_ancestors(schema: &mut Value, pointer: &str) {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    let mut parent = String::new();
    for step in steps {
        if let Some(map) = schema.pointer_mut(&parent).and_then(Value::as_object_mut) {
            if INVERTED.contains(&step) && map.remove(step).is_some() {
                return;
            }
            if step == "oneOf" {
                accept_several(map);
                return;
            }
        }
        parent = format!("{parent}/{step}");
    }
}

/// Alternatives that are not fully known may overlap.
fn accept_several(map: &mut Map<String, Value>) {
    if let Some(alternatives) = map.remove("oneOf") {
        map.entry("anyOf").or_insert(alternatives);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Validator;
    use super::*;

    fn accepts(schema: &Value, value: &Value) -> bool {
        let part = enforceable_part(schema);
        let validator = Validator::compile(&part).unwrap_or_else(|error| panic!("{part}: {error}"));
        validator.validate(value).is_empty()
    }

    #[test]
    fn what_can_be_enforced_is_enforced_and_nothing_more() {
        let cases = [
            (json!({"type": "string", "nullable": true, "example": "x", "xml": {}}), json!(null), json!(1)),
            (json!({"enum": ["a"], "type": "string", "nullable": true}), json!(null), json!("b")),
            (json!({"type": "string", "pattern": "^(?=a)", "maxLength": 2}), json!("b"), json!("abc")),
            (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}), json!(1), json!(0)),
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}),
                json!("a"),
                json!(1),
            ),
            (json!({"items": [{"type": "string"}], "minItems": 1}), json!([1]), json!([])),
            (
                json!({"patternProperties": {"(?!x)": {}}, "additionalProperties": false, "minProperties": 1}),
                json!({"a": 1}),
                json!({}),
            ),
            (
                json!({"$ref": "#/definitions/A", "type": "string", "definitions": {"A": {"type": "integer"}}}),
                json!(1),
                json!("a"),
            ),
            (json!({"$ref": "other.json", "not": {"type": "null"}}), json!(null), json!("never")),
        ];
        for (schema, good, bad) in cases {
            assert!(accepts(&schema, &good), "{good} against {schema}");
            assert!(bad == "never" || !accepts(&schema, &bad), "{bad} against {schema}");
        }
    }

    #[test]
    fn a_part_that_is_lost_does_not_refuse_values() {
        for schema in [
            json!({"not": {"pattern": "(?=a)"}}),
            json!({"oneOf": [{"pattern": "(?=a)"}, {"type": "string"}]}),
            json!({"if": {"pattern": "(?=a)"}, "then": {"maxLength": 0}}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"type": "text", "title": 3, "default": 4}),
        ] {
            assert!(accepts(&schema, &json!("b")), "{schema}");
        }
    }

    #[test]
    fn defaults_that_do_not_conform_are_not_used() {
        let part = enforceable_part(
            &json!({"properties": {"a": {"type": "string", "default": 3}, "b": {"default": 1}}}),
        );
        assert_eq!(part["properties"], json!({"a": {"type": "string"}, "b": {"default": 1}}));
    }
}
