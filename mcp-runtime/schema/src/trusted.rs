//! The part of a foreign schema that can be enforced. A schema that was written for another program may have keywords of
//! another dialect, or patterns of another engine: values are checked against the rest of it, never against more.

use serde_json::{Map, Value, json};

use super::{
    alternatives::VARIANTS,
    compile::{UnsupportedKeyword, UnsupportedKeywords, compile_all},
    meta_schema::is_keyword,
    published_values::compile_with_errors,
    walk,
};

/// Keywords that refuse what their subschema accepts, so that they cannot be enforced if a part of it is not.
const INVERTED: [&str; 3] = ["not", "if", "contains"];

/// Keywords that apply a schema to the same value.
const APPLICATORS: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas"];

/// Keywords of other dialects, and of parts of 2020-12 that the validator does not have, which refuse values.
const OTHER_ASSERTIONS: [&str; 7] =
    ["dependencies", "additionalItems", "$dynamicRef", "$recursiveRef", "extends", "disallow", "divisibleBy"];

/// Keywords of 2020-12 that are about schemas, and not about values.
const PASSED_OVER: [&str; 4] = ["$schema", "$id", "$dynamicAnchor", "$recursiveAnchor"];

/// The most keywords of one subschema that are passed over; a chain of references that is too long may take thousands.
const MAX_ROUNDS: usize = 64;

/// The enforceable part of a schema, which compiles, and the keywords that are not in it, each with its place and the reason.
pub fn enforceable_part(foreign: &Value) -> (Value, Vec<UnsupportedKeyword>) {
    let (mut schema, mut passed_over) = (foreign.clone(), Vec::new());
    let dialect = foreign.get("$schema").and_then(Value::as_str).unwrap_or_default();
    // older dialects ignore what is beside a reference
    let keeps_siblings = dialect.contains("/2020-12/") || dialect.contains("/2019-09/");
    find_other_assertions(foreign, "", &mut passed_over);
    translate(&mut schema, keeps_siblings);
    // each round removes a keyword from every subschema that has one too many
    for _ in 0..MAX_ROUNDS {
        let Err(UnsupportedKeywords { first, others }) = compile_all(&schema) else {
            return (schema, passed_over);
        };
        for unsupported in std::iter::once(first).chain(others) {
            let is_removed = remove_keyword(&mut schema, &unsupported.pointer, &unsupported.keyword)
                // one of these applies the schema to itself
                || APPLICATORS.iter().any(|keyword| remove_keyword(&mut schema, &unsupported.pointer, keyword));
            let pointer = unsupported.pointer.clone();
            passed_over.push(unsupported);
            if !is_removed {
                if schema.pointer(&pointer).is_some() {
                    return (json!({}), passed_over);
                }
                // it was in a part that is removed already
                continue;
            }
            weaken_ancestors(&mut schema, &pointer);
        }
    }
    (json!({}), passed_over)
}

/// Removes the published values that do not conform.
pub fn remove_wrong_values(schema: &mut Value) {
    loop {
        let (_, invalid) = compile_with_errors(schema);
        let removed = invalid.iter().filter(|value| remove_keyword(schema, &value.pointer, value.keyword));
        if removed.count() == 0 {
            return;
        }
    }
}

fn find_other_assertions(schema: &Value, pointer: &str, found: &mut Vec<UnsupportedKeyword>) {
    let Value::Object(map) = schema else { return };
    let is_tuple = map.get("items").is_some_and(Value::is_array);
    for keyword in OTHER_ASSERTIONS.iter().filter(|keyword| map.contains_key(**keyword)) {
        // that of a tuple is translated
        if !(is_tuple && *keyword == "additionalItems") {
            found.push(UnsupportedKeyword::unknown(keyword, pointer));
        }
    }
    walk::subschemas(map, |step, child| find_other_assertions(child, &format!("{pointer}{step}"), found));
}

/// Translates OpenAPI's `nullable` and the tuples of older dialects, and removes keywords that no part of the validator knows.
fn translate(schema: &mut Value, keeps_siblings: bool) {
    let Value::Object(map) = schema else { return };
    if map.get("items").is_some_and(Value::is_array) {
        let rest = map.remove("additionalItems").unwrap_or(Value::Bool(true));
        let tuple = map.insert("items".to_owned(), rest);
        map.insert("prefixItems".to_owned(), tuple.unwrap_or_default());
    }
    walk::subschemas_mut(map, &mut |_, child| translate(child, keeps_siblings));
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
    let ignores_siblings = !keeps_siblings && map.contains_key("$ref");
    map.retain(|keyword, _| {
        let is_kept =
            !ignores_siblings || matches!(keyword.as_str(), "$ref" | "$defs" | "definitions" | "default");
        is_kept
            && (is_keyword(keyword) || keyword == VARIANTS)
            && !PASSED_OVER.contains(&keyword.as_str())
            && !OTHER_ASSERTIONS.contains(&keyword.as_str())
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
        let (part, _) = enforceable_part(schema);
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
            (json!({"items": [{"type": "string"}]}), json!(["a", 1]), json!([1])),
            (
                json!({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}),
                json!(["a", 1]),
                json!(["a", "b"]),
            ),
            (
                json!({
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "properties": {
                        "a": {"$ref": "#/$defs/A", "maximum": 3},
                        "b": {"pattern": "\\p{L}", "minLength": 1},
                        "c": {"pattern": "(?=c)"},
                        "d": {"$ref": "https://example.com/d.json"},
                    },
                    "$defs": {"A": {"type": "integer"}}
                }),
                json!({"a": 3, "b": "1", "c": "d", "d": 1}),
                json!({"a": 4}),
            ),
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
    fn each_keyword_that_is_passed_over_is_named_with_its_place() {
        let (_, passed_over) = enforceable_part(&json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {
                "a/b": {"pattern": "(?=a)", "example": "a"},
                "c": {"dependencies": {"d": ["e"]}, "$ref": "other.json"},
            },
        }));
        let named: Vec<_> =
            passed_over.iter().map(|keyword| (&*keyword.keyword, &*keyword.pointer)).collect();
        assert_eq!(
            named,
            [("dependencies", "/properties/c"), ("pattern", "/properties/a~1b"), ("$ref", "/properties/c"),]
        );
    }

    #[test]
    fn a_schema_with_many_keywords_that_cannot_be_enforced_takes_few_rounds() {
        let bad = |n: usize| (format!("p{n}"), json!({"pattern": "(?=a)", "$ref": "#/$defs/none"}));
        let properties: Map<String, Value> = (0..5_000).map(bad).collect();
        let (schema, passed_over) = enforceable_part(&json!({"properties": properties, "required": ["p0"]}));
        assert_eq!(schema["required"], json!(["p0"]));
        assert!(passed_over.len() >= 5_000, "{}", passed_over.len());
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
        let mut part = json!({"properties": {"a": {"type": "string", "default": 3}, "b": {"default": 1}}});
        remove_wrong_values(&mut part);
        assert_eq!(part["properties"], json!({"a": {"type": "string"}, "b": {"default": 1}}));
    }
}
