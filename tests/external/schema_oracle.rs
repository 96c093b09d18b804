//! The package of schemas beside the crate `jsonschema`: random schemas and instances, and what the meta-schema refuses.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use mcp_runtime_schema::{Direction, Validator, check_schema, minimize, suit_clients, wrap_for_legacy};

/// Whether values are equal, where `1` is `1.0`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |key, value| other.get(key).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(|(key, value)| same(key, value))
        }
        _ => one == other,
    }
}

/// Few names and small numbers, so that schemas often apply to instances.
fn name() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(vec!["a", "b", "ab", "c1"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-4i64..5).prop_map(Value::from),
        (-8i64..9).prop_map(|half| json!(half as f64 / 2.0)),
        prop::sample::select(vec!["", "a", "b", "ab", "é", "aaaa", "1", "0.5", "true", "[1]", "{}"])
            .prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> + Clone {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Keywords that do not contain schemas.
fn leaf() -> impl Strategy<Value = Vec<(String, Value)>> {
    let types = ["string", "integer", "number", "boolean", "null", "array", "object"];
    let one_type = prop::sample::select(types.to_vec()).prop_map(Value::from);
    let bound = prop_oneof![(-3i64..4).prop_map(Value::from), (-5i64..6).prop_map(|n| json!(n as f64 / 2.0))];
    let pattern = prop::sample::select(vec!["a", "^a$", "^[a-b]*$", "^\\d+$", "é|b", "^.{2,}$"]);
    let limits = prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    let counts = prop::sample::select(vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ]);
    let keyword = prop_oneof![
        4 => one_type.prop_map(|one| ("type".to_owned(), one)),
        2 => prop::sample::subsequence(types.to_vec(), 1..4).prop_map(|some| ("type".to_owned(), json!(some))),
        3 => (limits, bound).prop_map(|(limit, bound)| (limit.to_owned(), bound)),
        1 => prop::sample::select(vec![json!(2), json!(0.5), json!(3), json!(1.0)])
            .prop_map(|by| ("multipleOf".to_owned(), by)),
        3 => (counts, 0u64..4).prop_map(|(count, limit)| (count.to_owned(), json!(limit))),
        1 => pattern.prop_map(|pattern| ("pattern".to_owned(), json!(pattern))),
        1 => Just(("uniqueItems".to_owned(), json!(true))),
        1 => prop::collection::vec(instance(), 1..4).prop_map(|values| ("enum".to_owned(), json!(values))),
        1 => instance().prop_map(|value| ("const".to_owned(), value)),
        2 => prop::collection::btree_set(name(), 1..3).prop_map(|names| ("required".to_owned(), json!(names))),
        1 => (name(), prop::collection::btree_set(name(), 1..3))
            .prop_map(|(name, needed)| ("dependentRequired".to_owned(), json!({ name: needed }))),
    ];
    prop::collection::vec(keyword, 0..3)
}

/// Keywords that contain schemas.
fn nested(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> impl Strategy<Value = Vec<(String, Value)>> {
    let single = prop::sample::select(vec![
        "items",
        "contains",
        "additionalProperties",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedProperties",
    ]);
    let lists = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
    let members = prop::collection::btree_map(name(), inner.clone(), 1..3);
    let keyword = prop_oneof![
        4 => (single, inner.clone()).prop_map(|(keyword, schema)| vec![(keyword.to_owned(), schema)]),
        4 => (lists, prop::collection::vec(inner.clone(), 1..4))
            .prop_map(|(keyword, schemas)| vec![(keyword.to_owned(), Value::from(schemas))]),
        5 => members.clone().prop_map(|members| vec![("properties".to_owned(), json!(members))]),
        1 => members.prop_map(|members| vec![("dependentSchemas".to_owned(), json!(members))]),
        1 => (prop::sample::select(vec!["^a", "b$", "\\d"]), inner.clone())
            .prop_map(|(pattern, schema)| vec![("patternProperties".to_owned(), json!({ pattern: schema }))]),
        1 => (inner.clone(), 0u64..3, 0u64..3).prop_map(|(schema, least, most)| vec![
            ("contains".to_owned(), schema),
            ("minContains".to_owned(), json!(least)),
            ("maxContains".to_owned(), json!(most)),
        ]),
        1 => prop::collection::vec(inner, 1..3).prop_map(|parts| vec![
            ("type".to_owned(), json!("array")),
            ("maxItems".to_owned(), json!(parts.len())),
            ("prefixItems".to_owned(), Value::from(parts)),
        ]),
        1 => Just(vec![("additionalProperties".to_owned(), json!(false))]),
        1 => Just(vec![("unevaluatedProperties".to_owned(), json!(false))]),
    ];
    prop::collection::vec(keyword, 0..3).prop_map(|keywords| keywords.into_iter().flatten().collect())
}

fn schema() -> impl Strategy<Value = Value> {
    let object = |keywords: Vec<(String, Value)>| Value::Object(keywords.into_iter().collect::<Map<_, _>>());
    let base = prop_oneof![
        8 => leaf().prop_map(object),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({"$ref": "#/$defs/Shared"})),
        1 => Just(json!({"$ref": "#anchored"})),
    ];
    let tree = base.prop_recursive(3, 24, 4, move |inner| {
        (leaf(), nested(inner)).prop_map(move |(own, nested)| object(own.into_iter().chain(nested).collect()))
    });
    // The shared definitions are recursive, through a property and through items.
    (tree.clone(), leaf().prop_map(object)).prop_map(|(root, mut shared)| {
        shared["properties"] = json!({"a": {"$ref": "#/$defs/Shared"}});
        let anchored = json!({"$anchor": "anchored", "items": {"$ref": "#anchored"}, "not": {"const": 1}});
        let mut root = if root.is_object() { root } else { json!({"items": root}) };
        root["$defs"] = json!({"Shared": shared, "Anchored": anchored});
        root
    })
}

fn oracle(schema: &Value) -> Result<jsonschema::Validator, TestCaseError> {
    jsonschema::draft202012::new(schema).map_err(|error| TestCaseError::fail(error.to_string()))
}

fn validator(schema: &Value) -> Result<Validator, TestCaseError> {
    Validator::compile(schema).map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Whether both accept an instance, as a value and as text.
fn compare(schema: &Value, instance: &Value) -> Result<bool, TestCaseError> {
    let expected = oracle(schema)?.is_valid(instance);
    let validator = validator(schema)?;
    prop_assert_eq!(validator.validate(instance).is_empty(), expected, "{} against {}", instance, schema);
    let of_text = validator.validate_str(&instance.to_string()).is_ok();
    prop_assert_eq!(of_text, expected, "text {} against {}", instance, schema);
    Ok(expected)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    // also as legacy clients see them, minimized, and in the words that clients take; and what is accepted is not changed by repairs
    #[test]
    fn random_schemas_accept_what_the_oracle_accepts_in_every_form(
        schema in schema(),
        instances in prop::collection::vec(instance(), 8),
    ) {
        let mut minimized = schema.clone();
        minimize(&mut minimized, Direction::Output);
        let mut suited = schema.clone();
        suit_clients(&mut suited);
        let of_suited = (validator(&suited)?, oracle(&suited)?);
        let (own, wrapped, small) = (validator(&schema)?, validator(&wrap_for_legacy(&schema))?, oracle(&minimized)?);
        for instance in &instances {
            let expected = compare(&schema, instance)?;
            prop_assert_eq!(wrapped.validate(&json!({"result": instance})).is_empty(), expected, "wrapped {}", schema);
            let by_suited = (of_suited.0.is_valid(instance), of_suited.1.is_valid(instance));
            prop_assert_eq!(by_suited, (expected, expected), "{} against {} and {}", instance, schema, suited);
            prop_assert_eq!(small.is_valid(instance), expected, "{} against {} and {}", instance, schema, minimized);
            if expected {
                let mut repaired = instance.clone();
                own.repair(&mut repaired, false);
                // only the notation of integers may have changed
                prop_assert!(is_same(instance, &repaired), "{} became {} by {}", instance, repaired, schema);
            }
        }
    }
}

/// A schema with every keyword.
fn full() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/a", "$anchor": "a", "$comment": "c",
        "$vocabulary": { "https://example.com/v": true },
        "$defs": { "D": { "type": "object", "properties": { "a": { "minimum": 1 } }, "required": ["a"] } },
        "type": "object", "title": "t", "description": "d", "default": {}, "examples": [{}],
        "deprecated": false, "readOnly": false, "writeOnly": false, "format": "f",
        "properties": {
            "a": { "type": ["string", "null"], "minLength": 1, "maxLength": 2, "pattern": "a", "enum": ["a"] },
            "n": { "type": "number", "minimum": 0, "maximum": 5, "exclusiveMinimum": -1, "exclusiveMaximum": 9, "multipleOf": 0.5 },
            "l": { "type": "array", "prefixItems": [true], "items": { "const": 1 }, "contains": true, "minContains": 0,
                   "maxContains": 3, "minItems": 0, "maxItems": 3, "uniqueItems": true, "unevaluatedItems": false },
            "c": { "contentEncoding": "base64", "contentMediaType": "text/plain", "contentSchema": true },
            "x": { "if": true, "then": true, "else": false, "not": false, "allOf": [true], "anyOf": [true], "oneOf": [true] },
        },
        "patternProperties": { "^x": true }, "additionalProperties": false, "propertyNames": { "type": "string" },
        "unevaluatedProperties": true, "required": ["a"], "minProperties": 0, "maxProperties": 9,
        "dependentRequired": { "a": ["n"] }, "dependentSchemas": { "a": true },
    })
}

/// Every JSON pointer of a value, with the root first.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                pointers(member, &format!("{at}/{}", key.replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| pointers(item, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

#[test]
fn what_the_meta_schema_refuses_is_refused_and_nothing_else() {
    let full = full();
    assert_eq!(check_schema(&full), Ok(()));
    let mut places = Vec::new();
    pointers(&full, "", &mut places);
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(0),
        json!("x y"),
        json!([]),
        json!({}),
        json!([1]),
        json!(["a", "a"]),
        json!({ "a": 1 }),
        json!([{ "type": 1 }]),
        json!({ "a": { "required": "a" } }),
    ];
    let (mut refused, mut tried) = (0, 0);
    for place in &places {
        // a schema of another dialect is not looked at
        if place == "/$schema" {
            continue;
        }
        for value in &wrong {
            let mut schema = full.clone();
            *schema.pointer_mut(place).unwrap() = value.clone();
            let expected = jsonschema::draft202012::meta::is_valid(&schema);
            let found = check_schema(&schema);
            assert_eq!(found.is_ok(), expected, "{place} = {value}: {found:?}");
            tried += 1;
            refused += usize::from(!expected);
        }
    }
    assert!(tried > 1_000 && refused > 500, "{refused} of {tried}");
}
