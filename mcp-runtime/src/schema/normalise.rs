//! Makes a schema lean: what a model need not read is left out, the rest means the same.
//!
//! Called once per published schema, after its definitions were hoisted to the root.

use serde_json::{Map, Value, json};

use super::generate::drop_unused_defs;
use super::walk;

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Values that clients send: an optional property may be absent, so its schema need not allow `null`.
    Input,
    /// Values that this server sends: `null` is published wherever it is sent.
    Output,
}

/// Formats of numbers, which say nothing that `type` and bounds do not; OpenAPI's and Rust's names.
const NUMBER_FORMATS: [&str; 17] = [
    "int8", "int16", "int32", "int64", "int128", "int", "isize", "uint8", "uint16", "uint32", "uint64",
    "uint128", "uint", "usize", "float", "double", "decimal",
];

/// Keywords that say something to readers and nothing to validators.
const ANNOTATIONS: [&str; 7] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// Normalises a finished root schema in place.
///
/// A `title` at the root stays: `subschema_for` adds none there.
pub(crate) fn lean(root: &mut Value, mode: Mode) {
    slim(root, mode);
    share_recursion(root);
    drop_unused_defs(root);
}

fn slim(schema: &mut Value, mode: Mode) {
    let Value::Object(map) = schema else { return };
    walk::children_mut(map, &mut |_, child| slim(child, mode));
    map.remove("$schema");
    if map.get("default") == Some(&Value::Null) {
        map.remove("default");
    }
    if map.get("format").and_then(Value::as_str).is_some_and(|format| NUMBER_FORMATS.contains(&format)) {
        map.remove("format");
    }
    if mode == Mode::Input {
        drop_optional_nulls(map);
    }
    slim_properties(map);
    for keyword in ["required", "properties"] {
        let empty = map.get(keyword).is_some_and(|value| match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        });
        if empty {
            map.remove(keyword);
        }
    }
    for keyword in ["items", "contains", "not"] {
        if let Some(value) = map.get_mut(keyword) {
            true_to_braces(value);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(list)) = map.get_mut(keyword) {
            list.iter_mut().for_each(true_to_braces);
        }
    }
    for keyword in ["$defs", "patternProperties"] {
        if let Some(Value::Object(members)) = map.get_mut(keyword) {
            members.values_mut().for_each(true_to_braces);
        }
    }
    merge_plain_variants(map);
    unwrap_single(map);
}

fn slim_properties(map: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        true_to_braces(property);
        // Clients of older revisions take every property for an object.
        if *property == Value::Bool(false) {
            *property = json!({"not": {}});
        }
        if let Value::Object(property) = property
            && property.get("title").and_then(Value::as_str).is_some_and(|title| repeats(title, name))
        {
            property.remove("title");
        }
    }
}

fn true_to_braces(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = Value::Object(Map::new());
    }
}

fn repeats(title: &str, name: &str) -> bool {
    let letters = |text: &str| {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    letters(title) == letters(name)
}

/// Takes `null` out of properties that may be absent: absence says the same in fewer bytes.
fn drop_optional_nulls(map: &mut Map<String, Value>) {
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        if !required.iter().any(|required| required.as_str() == Some(name))
            && let Value::Object(property) = property
        {
            drop_null(property);
        }
    }
}

fn drop_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && types.iter().any(|name| name != "null")
    {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum")
        && choices.iter().any(|choice| !choice.is_null())
    {
        choices.retain(|choice| !choice.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = schema.get_mut(keyword) {
            let is_null = |one: &Value| one.get("type").and_then(Value::as_str) == Some("null");
            if alternatives.iter().any(|one| !is_null(one)) {
                alternatives.retain(|one| !is_null(one));
            }
        }
    }
    unwrap_single(schema);
}

/// `anyOf` or `oneOf` of one schema is that schema; annotations outside it win over those inside.
fn unwrap_single(schema: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(alternatives)) = schema.get(keyword) else { continue };
        let [Value::Object(inner)] = alternatives.as_slice() else { continue };
        // `additionalProperties` and the like look at their neighbours, so they cannot move beside keywords.
        let alone =
            schema.keys().all(|key| key == keyword || key == "$defs" || ANNOTATIONS.contains(&key.as_str()));
        if !alone || inner.contains_key("$defs") {
            continue;
        }
        let inner = inner.clone();
        schema.remove(keyword);
        for (key, value) in inner {
            schema.entry(key).or_insert(value);
        }
    }
}

/// `oneOf` of undescribed string constants is an `enum`.
fn merge_plain_variants(schema: &mut Map<String, Value>) {
    if schema.contains_key("type") || schema.contains_key("enum") {
        return;
    }
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let mut choices = Vec::new();
    for variant in variants {
        let Value::Object(variant) = variant else { return };
        if variant.len() != 2 || variant.get("type").and_then(Value::as_str) != Some("string") {
            return;
        }
        match (variant.get("const"), variant.get("enum")) {
            (Some(Value::String(one)), None) => choices.push(Value::from(one.as_str())),
            (None, Some(Value::Array(several))) => choices.extend(several.iter().cloned()),
            _ => return,
        }
    }
    let distinct =
        choices.iter().enumerate().all(|(at, choice)| !choices.iter().take(at).any(|other| other == choice));
    if !choices.is_empty() && distinct {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), Value::Array(choices));
    }
}

/// Replaces the inlined first level of recursive types by a reference to their definition.
fn share_recursion(root: &mut Value) {
    let Some(Value::Object(mut defs)) = root.get("$defs").cloned() else { return };
    // One without references is not recursive, and might equal a schema by chance.
    defs.retain(|_, definition| definition.to_string().contains("\"$ref\""));
    let Value::Object(map) = root else { return };
    let own = without_defs(map);
    walk::children_mut(map, &mut |keyword, child| {
        if keyword == "$defs" {
            // A definition is not replaced by a reference to itself, only what is inside it.
            if let Value::Object(inside) = child {
                walk::children_mut(inside, &mut |_, inner| share(inner, &defs));
            }
        } else {
            share(child, &defs);
        }
    });
    // A root that is itself one of the definitions needs no copy of it.
    let after = without_defs(map);
    let itself = defs.iter().find(|(_, definition)| {
        definition.as_object().is_some_and(|definition| same(&own, definition) || same(&after, definition))
    });
    if let Some((name, _)) = itself {
        let at = format!("/$defs/{}", walk::escape(name));
        walk::rewrite_refs(root, &|reference| {
            (walk::pointer(reference)? == at.as_str()).then(|| "#".to_owned())
        });
    }
}

fn without_defs(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().filter(|(key, _)| *key != "$defs").map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn share(schema: &mut Value, defs: &Map<String, Value>) {
    let Value::Object(map) = schema else { return };
    walk::children_mut(map, &mut |_, child| share(child, defs));
    if map.contains_key("$ref") {
        return;
    }
    let nullable =
        map.get("type").and_then(Value::as_array).is_some_and(|types| types.iter().any(|t| t == "null"));
    let mut compared = map.clone();
    if nullable {
        drop_null(&mut compared);
    }
    let hit = defs.iter().find_map(|(name, definition)| {
        let definition = definition.as_object()?;
        (same(&compared, definition)).then_some((name, definition))
    });
    if let Some((name, definition)) = hit {
        map.retain(|key, value| ANNOTATIONS.contains(&key.as_str()) && definition.get(key) != Some(value));
        let reference = json!(format!("#/$defs/{}", encode(name)));
        if nullable {
            map.insert("anyOf".to_owned(), json!([{"$ref": reference}, {"type": "null"}]));
        } else {
            map.insert("$ref".to_owned(), reference);
        }
    }
}

/// Whether two schemas constrain alike: equal apart from their own annotations.
fn same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let assertions =
        |map: &Map<String, Value>| map.keys().filter(|key| !ANNOTATIONS.contains(&key.as_str())).count();
    assertions(one) == assertions(other)
        && one.iter().all(|(key, value)| ANNOTATIONS.contains(&key.as_str()) || other.get(key) == Some(value))
}

/// A definition's name as a step of a URI fragment.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in walk::escape(name).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaned(mut schema: Value, mode: Mode) -> Value {
        lean(&mut schema, mode);
        schema
    }

    #[test]
    fn noise_is_dropped() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "max_hits": {"title": "Max hits", "type": "integer", "format": "uint32", "minimum": 0},
                "day": {"title": "The day", "type": "string", "format": "date"},
                "any": true,
                "never": false,
                "nested": {"type": "object", "properties": {}, "required": [], "additionalProperties": true}
            },
            "required": []
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "max_hits": {"type": "integer", "minimum": 0},
                "day": {"title": "The day", "type": "string", "format": "date"},
                "any": {},
                "never": {"not": {}},
                "nested": {"type": "object", "additionalProperties": true}
            }
        });
        assert_eq!(leaned(schema, Mode::Input), expected);
    }

    #[test]
    fn t10_null_goes_from_optional_inputs_only() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "null"], "default": null},
                "b": {"anyOf": [{"type": "object", "description": "inner"}, {"type": "null"}], "description": "outer"},
                "c": {"type": ["string", "null"], "enum": ["x", null]},
                "d": {"type": ["integer", "null"]},
                "e": {"type": "array", "items": {"type": ["integer", "null"]}}
            },
            "required": ["d"]
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "object", "description": "outer"},
                "c": {"type": "string", "enum": ["x"]},
                "d": {"type": ["integer", "null"]},
                "e": {"type": "array", "items": {"type": ["integer", "null"]}}
            },
            "required": ["d"]
        });
        assert_eq!(leaned(schema.clone(), Mode::Input), expected);
        let mut output = schema;
        output["properties"]["a"] = json!({"type": ["integer", "null"]});
        assert_eq!(leaned(output.clone(), Mode::Output), output);
    }

    #[test]
    fn variants_become_an_enum_unless_described() {
        let plain =
            json!({"oneOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "string", "const": "c"}]});
        assert_eq!(leaned(plain, Mode::Input), json!({"type": "string", "enum": ["a", "b", "c"]}));
        let described = json!({"oneOf": [
            {"type": "string", "const": "a", "description": "first"},
            {"type": "string", "const": "b"}
        ]});
        assert_eq!(leaned(described.clone(), Mode::Input), described);
    }

    #[test]
    fn a_recursive_type_is_written_once() {
        let node = json!({
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}
        });
        let mut first = node.clone();
        first["description"] = json!("the head");
        let root = json!({"type": "object", "properties": {"list": first}, "required": ["list"], "$defs": {"Node": node}});
        let expected = json!({
            "type": "object",
            "properties": {"list": {"$ref": "#/$defs/Node", "description": "the head"}},
            "required": ["list"],
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}
        });
        assert_eq!(leaned(root, Mode::Input), expected);
        let mut itself = node.clone();
        itself["$defs"] = json!({"Node": node});
        let expected = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert_eq!(leaned(itself, Mode::Input), expected);
    }
}
