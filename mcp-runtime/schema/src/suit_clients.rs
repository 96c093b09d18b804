//! Writes what clients refuse in the arguments of a tool in another way that means the same: VS Code and OpenAI refuse an array
//! without `items`, OpenAI an object without `properties`, Gemini a list of types, and an `enum` that is empty or has a value
//! twice.

use serde_json::{Map, Value, json};

use super::{
    minimize::ANNOTATIONS,
    node::{Choices, TypeSet},
    walk,
};

/// Rewrites what a client refuses.
pub fn suit_clients(schema: &mut Value) {
    let may_move = !refers_into_schemas(schema);
    suit(schema, may_move);
}

/// Whether a reference leads to a part of a schema that is not a definition, so that parts have to stay where they are.
fn refers_into_schemas(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let reference = map.get("$ref").and_then(Value::as_str).and_then(walk::pointer);
    let mut found = reference.is_some_and(|pointer| {
        let mut steps = pointer.split('/').skip(1);
        !matches!((steps.next(), steps.next(), steps.next()), (None | Some("$defs" | "definitions"), _, None))
    });
    walk::subschemas(map, |_, child| found = found || refers_into_schemas(child));
    found
}

fn suit(schema: &mut Value, may_move: bool) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| suit(child, may_move));
    suit_choices(map);
    split_types(map, may_move);
    if may_move {
        add_items(map);
    }
    suit_containers(map);
}

/// Adds `items` and `properties` that accept everything.
fn suit_containers(map: &mut Map<String, Value>) {
    let has_type = |name: &str| map.get("type").and_then(Value::as_str) == Some(name);
    let (is_array, is_object) = (has_type("array"), has_type("object"));
    if is_array {
        map.entry("items").or_insert_with(|| json!({}));
    }
    let is_open = ["properties", "additionalProperties", "patternProperties"];
    let is_open = is_open.iter().any(|keyword| map.get(*keyword).is_some_and(Value::is_object));
    if is_object && !is_open {
        map.insert("properties".to_owned(), json!({}));
    }
}

/// Leaves out the values that an `enum` has before, and writes an empty one as `not`.
fn suit_choices(map: &mut Map<String, Value>) {
    let Some(Value::Array(values)) = map.get_mut("enum") else { return };
    *values = Choices::new(std::mem::take(values), false).distinct();
    if values.is_empty() {
        map.remove("enum");
        map.insert("not".to_owned(), json!({}));
    }
}

/// A tuple has `items` besides: any of its parts, or instead, if these are alike.
fn add_items(map: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = map.get("prefixItems") else { return };
    // else `items` would be about what follows
    let is_closed = map.get("maxItems").and_then(Value::as_u64) == u64::try_from(parts.len()).ok();
    if !is_closed || map.contains_key("items") {
        return;
    }
    let distinct = Choices::new(parts.clone(), false).distinct();
    let items = match distinct.as_slice() {
        [one] => {
            let one = one.clone();
            map.remove("prefixItems");
            one
        }
        // tuples inside of each other would be repeated at each level
        several if several.iter().any(has_tuple) => json!({}),
        _ => json!({ "anyOf": distinct }),
    };
    map.insert("items".to_owned(), items);
}

fn has_tuple(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let mut found = map.contains_key("prefixItems");
    walk::subschemas(map, |_, child| found = found || has_tuple(child));
    found
}

/// Replaces a list of types by alternatives, each with the keywords of its type.
fn split_types(map: &mut Map<String, Value>, may_move: bool) {
    let Some(Value::Array(names)) = map.get("type") else { return };
    let mut names: Vec<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let choices = |name: &str, values: &[Value]| -> Vec<Value> {
        let types = TypeSet::parse(&name.into()).unwrap_or(TypeSet::ANY);
        values.iter().filter(|value| types.contains(TypeSet::of(value))).cloned().collect()
    };
    let listed = map.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    for values in [listed, map.get("const").map(std::slice::from_ref)].into_iter().flatten() {
        names.retain(|name| !choices(name, values).is_empty());
    }
    let one = match names.as_slice() {
        [] => None,
        [one] => Some(Value::from(one.as_str())),
        _ => None,
    };
    map.remove("type");
    if names.is_empty() {
        map.insert("not".to_owned(), json!({}));
        return;
    }
    if let Some(one) = one {
        // a value of another type is not one of the choices
        map.insert("type".to_owned(), one);
        return;
    }
    let is_outside =
        |keyword: &str| ANNOTATIONS.contains(&keyword) || keyword == "$defs" || keyword.starts_with("x-");
    let is_split = |keyword: &String| is_outside(keyword) || keyword == "enum" || type_of(keyword).is_some();
    if !may_move || !map.keys().all(is_split) {
        let types: Value = names.iter().map(|name| branch(name, Map::new())).collect();
        if map.contains_key("anyOf") {
            if let Some(all) = map.entry("allOf").or_insert_with(|| json!([])).as_array_mut() {
                all.push(json!({ "anyOf": types }));
            }
        } else {
            map.insert("anyOf".to_owned(), types);
        }
        return;
    }
    let (mut rest, mut keywords) = (Map::new(), Map::new());
    for (keyword, value) in std::mem::take(map) {
        if is_outside(&keyword) {
            rest.insert(keyword, value)
        } else {
            keywords.insert(keyword, value)
        };
    }
    let of_type = |name: &String| {
        let types = TypeSet::parse(&name.as_str().into()).unwrap_or_default();
        let mut own = Map::new();
        for (keyword, value) in &keywords {
            match value {
                // `null` alone has no choice
                Value::Array(values) if keyword == "enum" => {
                    let values = choices(name, values);
                    (name != "null").then(|| own.insert(keyword.clone(), Value::Array(values)));
                }
                value if type_of(keyword).is_some_and(|of| of.contains(types)) => {
                    own.insert(keyword.clone(), value.clone());
                }
                _ => {}
            }
        }
        branch(name, own)
    };
    rest.insert("anyOf".to_owned(), names.iter().map(of_type).collect());
    *map = rest;
}

/// A schema of one type.
fn branch(name: &str, mut keywords: Map<String, Value>) -> Value {
    keywords.insert("type".to_owned(), name.into());
    add_items(&mut keywords);
    suit_containers(&mut keywords);
    Value::Object(keywords)
}

/// The type that a keyword is about.
fn type_of(keyword: &str) -> Option<TypeSet> {
    Some(match keyword {
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding" | "contentMediaType" => {
            TypeSet::STRING
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => TypeSet::NUMBER,
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" | "minContains"
        | "maxContains" => TypeSet::ARRAY,
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "unevaluatedProperties" => TypeSet::OBJECT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_refuse_is_written_in_another_way() {
        let integer = json!({ "type": "integer" });
        let tuple =
            |parts: Value| json!({ "type": "array", "prefixItems": parts, "minItems": 2, "maxItems": 2 });
        for (refused, suited) in [
            (
                tuple(json!([integer, integer])),
                json!({ "type": "array", "items": integer, "minItems": 2, "maxItems": 2 }),
            ),
            (
                tuple(json!([integer, { "type": "string" }])),
                json!({
                    "type": "array", "prefixItems": [integer, { "type": "string" }], "minItems": 2, "maxItems": 2,
                    "items": { "anyOf": [integer, { "type": "string" }] }
                }),
            ),
            (json!({ "type": "object" }), json!({ "type": "object", "properties": {} })),
            (
                json!({ "items": { "type": ["integer", "null"], "minimum": 0, "description": "One" } }),
                json!({ "items": {
                    "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }], "description": "One"
                } }),
            ),
            // what follows the parts may be anything
            (
                json!({ "type": "array", "prefixItems": [integer], "minItems": 1 }),
                json!({ "type": "array", "prefixItems": [integer], "minItems": 1, "items": {} }),
            ),
            (json!({ "enum": ["a", 1, "a", 1.0] }), json!({ "enum": ["a", 1] })),
            (json!({ "type": "string", "enum": [] }), json!({ "type": "string", "not": {} })),
            (
                json!({ "type": ["string", "null"], "enum": ["a"] }),
                json!({ "type": "string", "enum": ["a"] }),
            ),
            (json!({ "type": ["string"] }), json!({ "type": "string" })),
            (
                json!({ "items": { "type": ["array", "null"], "items": {} }, "contains": { "$ref": "#/items/items" } }),
                json!({
                    "items": { "items": {}, "anyOf": [{ "type": "array", "items": {} }, { "type": "null" }] },
                    "contains": { "$ref": "#/items/items" }
                }),
            ),
            (
                json!({ "type": ["array", "object"], "required": ["a"], "minItems": 1 }),
                json!({ "anyOf": [
                    { "type": "array", "minItems": 1, "items": {} },
                    { "type": "object", "required": ["a"], "properties": {} }
                ] }),
            ),
            (
                json!({ "type": ["string", "array"], "anyOf": [{ "minLength": 1 }], "not": { "const": "a" } }),
                json!({
                    "anyOf": [{ "minLength": 1 }], "not": { "const": "a" },
                    "allOf": [{ "anyOf": [{ "type": "string" }, { "type": "array", "items": {} }] }]
                }),
            ),
            (
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
            ),
        ] {
            let mut schema = refused;
            suit_clients(&mut schema);
            assert_eq!(schema, suited);
        }
        let deep = (0..40).fold(json!({}), |inner, _| tuple(json!([inner, { "type": "string" }])));
        let mut suited = deep.clone();
        suit_clients(&mut suited);
        assert!(suited.to_string().len() < 2 * deep.to_string().len());
        let kept = json!({ "type": "object", "additionalProperties": true, "properties": {} });
        let mut schema = kept.clone();
        suit_clients(&mut schema);
        assert_eq!(schema, kept);
    }
}
