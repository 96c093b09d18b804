//! Minimizes a schema for models: removes keywords that do not inform them, and `null` where absence means the same.

use serde_json::{Map, Value, json};

use super::generate::drop_unused_defs;
use super::walk;

/// The direction in which values of a schema are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Values from clients: an optional property may be absent, so its schema need not allow `null`.
    Input,
    /// Values from the server: `null` is published wherever it is sent.
    Output,
}

/// Formats of numbers, by OpenAPI's and Rust's names: redundant with `type` and bounds.
const NUMBER_FORMATS: [&str; 17] = [
    "int8", "int16", "int32", "int64", "int128", "int", "isize", "uint8", "uint16", "uint32", "uint64",
    "uint128", "uint", "usize", "float", "double", "decimal",
];

/// Keywords that inform readers and are not assertions.
pub(super) const ANNOTATIONS: [&str; 7] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// The keyword of a property that may be absent, and in which `null` means something else. It is never published.
pub const NULLABLE: &str = "x-mcp-null";

/// Minimizes a root schema whose definitions are in `$defs` of the root.
///
/// A `title` at the root is kept: schemars' `subschema_for` does not add one.
pub fn minimize(root: &mut Value, direction: Direction) {
    minimize_typed(root, direction);
    drop_number_formats(root);
}

/// The same, with the formats of numbers, which tell their types, until [`drop_number_formats`].
pub fn minimize_typed(root: &mut Value, direction: Direction) {
    minimize_node(root, direction);
    share_recursion(root);
    drop_unused_defs(root);
}

/// Removes the formats of numbers.
pub fn drop_number_formats(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| drop_number_formats(child));
    if map.get("format").and_then(Value::as_str).is_some_and(|format| NUMBER_FORMATS.contains(&format)) {
        map.remove("format");
    }
}

fn minimize_node(schema: &mut Value, direction: Direction) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |keyword, child| {
        minimize_node(child, direction);
        let takes_object = ["items", "contains", "not", "anyOf", "oneOf", "allOf", "prefixItems", "$defs"];
        if takes_object.contains(&keyword) || matches!(keyword, "properties" | "patternProperties") {
            replace_true(child);
        }
    });
    map.remove("$schema");
    if map.get("default") == Some(&Value::Null) {
        map.remove("default");
    }
    if direction == Direction::Input {
        drop_optional_nulls(map);
    }
    minimize_properties(map);
    for keyword in ["required", "properties"] {
        let is_empty = map.get(keyword).is_some_and(|value| match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        });
        if is_empty {
            map.remove(keyword);
        }
    }
    merge_plain_variants(map);
    unwrap_single(map);
}

fn minimize_properties(map: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        // legacy clients expect the schema of a property to be an object
        if *property == Value::Bool(false) {
            *property = json!({"not": {}});
        }
        if let Value::Object(property) = property {
            property.remove(NULLABLE);
        }
        if let Value::Object(property) = property
            && property.get("title").and_then(Value::as_str).is_some_and(|title| repeats_name(title, name))
        {
            property.remove("title");
        }
    }
}

fn replace_true(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = Value::Object(Map::new());
    }
}

fn repeats_name(title: &str, name: &str) -> bool {
    let letters = |text: &str| {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    letters(title) == letters(name)
}

/// Removes `null` from properties that may be absent: absence means the same in fewer bytes.
fn drop_optional_nulls(map: &mut Map<String, Value>) {
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        if !required.iter().any(|required| required.as_str() == Some(name))
            && let Value::Object(property) = property
            && !property.contains_key(NULLABLE)
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
        // `additionalProperties` and similar keywords depend on adjacent ones, so they cannot be merged with others
        let is_alone =
            schema.keys().all(|key| key == keyword || key == "$defs" || ANNOTATIONS.contains(&key.as_str()));
        if !is_alone || inner.contains_key("$defs") {
            continue;
        }
        let inner = inner.clone();
        schema.remove(keyword);
        for (key, value) in inner {
            schema.entry(key).or_insert(value);
        }
    }
}

/// Replaces `oneOf` of string constants without descriptions by an `enum`.
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
    let are_distinct =
        choices.iter().enumerate().all(|(at, choice)| !choices.iter().take(at).any(|other| other == choice));
    if !choices.is_empty() && are_distinct {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), Value::Array(choices));
    }
}

/// Replaces the inlined first level of a recursive type by a reference to its definition.
fn share_recursion(root: &mut Value) {
    let Some(Value::Object(mut defs)) = root.get("$defs").cloned() else { return };
    // a definition without references is not recursive, and could equal a schema by chance
    defs.retain(|_, definition| definition.to_string().contains("\"$ref\""));
    let Value::Object(map) = root else { return };
    let before = without_defs(map);
    walk::subschemas_mut(map, &mut |keyword, child| {
        if keyword == "$defs" {
            // a definition must not be replaced by a reference to itself, only its subschemas
            if let Value::Object(definition) = child {
                walk::subschemas_mut(definition, &mut |_, inner| replace_copies(inner, &defs));
            }
        } else {
            replace_copies(child, &defs);
        }
    });
    // a root that equals a definition replaces it
    let after = without_defs(map);
    let root_definition = defs.iter().find(|(_, definition)| {
        definition.as_object().is_some_and(|definition| {
            same_assertions(&before, definition) || same_assertions(&after, definition)
        })
    });
    if let Some((name, _)) = root_definition {
        let pointer = format!("/$defs/{}", walk::escape(name));
        walk::rewrite_refs(root, &|reference| {
            (walk::pointer(reference)? == pointer.as_str()).then(|| "#".to_owned())
        });
    }
}

fn without_defs(map: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = Map::new();
    for (key, value) in map.iter().filter(|(key, _)| *key != "$defs") {
        rest.insert(key.clone(), value.clone());
    }
    rest
}

fn replace_copies(schema: &mut Value, defs: &Map<String, Value>) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| replace_copies(child, defs));
    if map.contains_key("$ref") {
        return;
    }
    let is_nullable =
        map.get("type").and_then(Value::as_array).is_some_and(|types| types.iter().any(|t| t == "null"));
    let mut compared = map.clone();
    if is_nullable {
        drop_null(&mut compared);
    }
    let copied = defs.iter().find_map(|(name, definition)| {
        let definition = definition.as_object()?;
        same_assertions(&compared, definition).then_some((name, definition))
    });
    if let Some((name, definition)) = copied {
        map.retain(|key, value| ANNOTATIONS.contains(&key.as_str()) && definition.get(key) != Some(value));
        let reference = json!(format!("#/$defs/{}", encode_fragment(name)));
        if is_nullable {
            map.insert("anyOf".to_owned(), json!([{"$ref": reference}, {"type": "null"}]));
        } else {
            map.insert("$ref".to_owned(), reference);
        }
    }
}

/// Whether two schemas are equal apart from their annotations.
fn same_assertions(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let count_assertions =
        |map: &Map<String, Value>| map.keys().filter(|key| !ANNOTATIONS.contains(&key.as_str())).count();
    count_assertions(one) == count_assertions(other)
        && one.iter().all(|(key, value)| ANNOTATIONS.contains(&key.as_str()) || other.get(key) == Some(value))
}

/// The name of a definition as one step of a JSON pointer in a URI fragment.
fn encode_fragment(name: &str) -> String {
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

    fn minimized(mut schema: Value, direction: Direction) -> Value {
        minimize(&mut schema, direction);
        schema
    }

    #[test]
    fn redundant_keywords_are_removed() {
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
        assert_eq!(minimized(schema, Direction::Input), expected);
    }

    #[test]
    fn null_is_removed_from_optional_inputs_only() {
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
        assert_eq!(minimized(schema.clone(), Direction::Input), expected);
        let mut output = schema;
        output["properties"]["a"] = json!({"type": ["integer", "null"]});
        assert_eq!(minimized(output.clone(), Direction::Output), output);
    }

    #[test]
    fn variants_without_descriptions_become_an_enum() {
        let plain =
            json!({"oneOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "string", "const": "c"}]});
        assert_eq!(minimized(plain, Direction::Input), json!({"type": "string", "enum": ["a", "b", "c"]}));
        let described = json!({"oneOf": [
            {"type": "string", "const": "a", "description": "first"},
            {"type": "string", "const": "b"}
        ]});
        assert_eq!(minimized(described.clone(), Direction::Input), described);
    }

    #[test]
    fn a_recursive_type_is_defined_once() {
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
        assert_eq!(minimized(root, Direction::Input), expected);
        let mut recursive = node.clone();
        recursive["$defs"] = json!({"Node": node});
        let expected = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert_eq!(minimized(recursive, Direction::Input), expected);
    }
}
