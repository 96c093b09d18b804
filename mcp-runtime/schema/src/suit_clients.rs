//! Writes what clients refuse in the arguments of a tool in another way that means the same: VS Code and OpenAI refuse an array
//! without `items`, OpenAI an object without `properties`, Gemini a list of types.

use serde_json::{Map, Value, json};

use super::{minimize::ANNOTATIONS, node::TypeSet, walk};

/// Rewrites what a client refuses.
pub fn suit_clients(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| suit_clients(child));
    add_items(map);
    let is_open = ["properties", "additionalProperties", "patternProperties"];
    let is_open = is_open.iter().any(|keyword| map.get(*keyword).is_some_and(Value::is_object));
    if map.get("type").and_then(Value::as_str) == Some("object") && !is_open {
        map.insert("properties".to_owned(), json!({}));
    }
    split_types(map);
}

/// A tuple has `items` besides: any of its parts, or instead, if these are alike.
fn add_items(map: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = map.get("prefixItems") else { return };
    // else `items` would be about what follows
    let is_closed = map.get("maxItems").and_then(Value::as_u64) == u64::try_from(parts.len()).ok();
    if !is_closed || map.contains_key("items") {
        return;
    }
    let mut distinct: Vec<Value> = Vec::new();
    for part in parts {
        if !distinct.contains(part) {
            distinct.push(part.clone());
        }
    }
    let items = match distinct.as_slice() {
        [one] => {
            let one = one.clone();
            map.remove("prefixItems");
            one
        }
        _ => json!({ "anyOf": distinct }),
    };
    map.insert("items".to_owned(), items);
}

/// Replaces a list of types by alternatives, each with the keywords of its type.
fn split_types(map: &mut Map<String, Value>) {
    let Some(Value::Array(names)) = map.get("type") else { return };
    let is_plain = |name: &str| matches!(name, "string" | "number" | "integer" | "boolean" | "null");
    let names: Vec<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let has_alternatives = ["anyOf", "oneOf", "const"].iter().any(|keyword| map.contains_key(*keyword));
    let are_plain = names.iter().filter(|name| is_plain(name)).count() + 1 >= names.len();
    if has_alternatives || !are_plain || names.len() < 2 {
        return;
    }
    map.remove("type");
    let (mut rest, mut keywords) = (Map::new(), Map::new());
    for (keyword, value) in std::mem::take(map) {
        let is_outside =
            ANNOTATIONS.contains(&keyword.as_str()) || keyword == "$defs" || keyword.starts_with("x-");
        if is_outside {
            rest.insert(keyword, value)
        } else {
            keywords.insert(keyword, value)
        };
    }
    let of_type = |name: &String| {
        let mut branch = Map::new();
        branch.insert("type".to_owned(), name.as_str().into());
        for (keyword, value) in &keywords {
            let is_own = match keyword.as_str() {
                "minLength" | "maxLength" | "pattern" | "format" => name == "string",
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                    name == "number" || name == "integer"
                }
                _ => !is_plain(name),
            };
            let value = match value {
                Value::Array(choices) if keyword == "enum" => {
                    let types = TypeSet::parse(&name.as_str().into()).unwrap_or(TypeSet::ANY);
                    let own = choices.iter().filter(|choice| types.contains(TypeSet::of(choice)));
                    Some(own.cloned().collect()).filter(|_| name != "null")
                }
                value => Some(value.clone()).filter(|_| is_own),
            };
            branch.extend(value.map(|value| (keyword.clone(), value)));
        }
        Value::Object(branch)
    };
    rest.insert("anyOf".to_owned(), names.iter().map(of_type).collect());
    *map = rest;
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
            (
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
            ),
        ] {
            let mut schema = refused;
            suit_clients(&mut schema);
            assert_eq!(schema, suited);
        }
        // what follows the parts may be anything
        let open = json!({ "type": "array", "prefixItems": [integer], "minItems": 1 });
        for kept in [open, json!({ "type": "object", "additionalProperties": true, "properties": {} })] {
            let mut schema = kept.clone();
            suit_clients(&mut schema);
            assert_eq!(schema, kept);
        }
    }
}
