//! Walks the subschemas of a schema and resolves `$ref`. The only table of keywords that hold subschemas.

use std::{borrow::Cow, collections::HashMap};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Keywords whose value is one schema.
const SINGLE: [&str; 12] = [
    "items",
    "additionalItems",
    "contains",
    "contentSchema",
    "additionalProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is an array of schemas; `items` is one in older dialects.
const LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value is an object of schemas, by names that are not keywords. In `dependencies`, of older dialects, some
/// are lists of names.
const MAPS: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];

/// Visits the direct subschemas of a schema with the relative JSON pointer of each.
pub fn subschemas<'a>(schema: &'a Map<String, Value>, mut visit: impl FnMut(String, &'a Value)) {
    visit_subschemas(schema, &mut visit);
}

/// The same, compiled once for all visitors.
fn visit_subschemas<'a>(schema: &'a Map<String, Value>, visit: &mut dyn FnMut(String, &'a Value)) {
    for (keyword, value) in schema {
        let name = keyword.as_str();
        match value {
            Value::Array(list) if LISTS.contains(&name) => {
                for (index, child) in list.iter().enumerate() {
                    visit(format!("/{name}/{index}"), child);
                }
            }
            Value::Object(map) if MAPS.contains(&name) => {
                for (key, child) in map {
                    visit(format!("/{name}/{}", escape(key)), child);
                }
            }
            Value::Object(_) | Value::Bool(_) if SINGLE.contains(&name) => visit(format!("/{name}"), value),
            _ => {}
        }
    }
}

/// Visits the direct subschemas of a schema with the keyword that holds each.
pub(super) fn subschemas_mut(schema: &mut Map<String, Value>, visit: &mut dyn FnMut(&str, &mut Value)) {
    for (keyword, value) in schema {
        let name = keyword.as_str();
        match value {
            Value::Array(list) if LISTS.contains(&name) => {
                list.iter_mut().for_each(|child| visit(name, child));
            }
            Value::Object(map) if MAPS.contains(&name) => {
                map.values_mut().for_each(|child| visit(name, child));
            }
            Value::Object(_) | Value::Bool(_) if SINGLE.contains(&name) => visit(name, value),
            _ => {}
        }
    }
}

/// Replaces every `$ref` for which `rewrite` returns a new one.
pub(super) fn rewrite_refs(schema: &mut Value, rewrite: &dyn Fn(&str) -> Option<String>) {
    let Value::Object(map) = schema else { return };
    if let Some(Value::String(reference)) = map.get_mut("$ref")
        && let Some(new) = rewrite(reference)
    {
        *reference = new;
    }
    subschemas_mut(map, &mut |_, child| rewrite_refs(child, rewrite));
}

/// The pointer of a local reference: `""` for `#`, `/$defs/T` for `#/$defs/T`, `None` for an anchor.
pub(super) fn pointer(reference: &str) -> Option<Cow<'_, str>> {
    let fragment = reference.strip_prefix('#')?;
    (fragment.is_empty() || fragment.starts_with('/'))
        .then(|| percent_decode_str(fragment).decode_utf8_lossy())
}

/// The target of a local reference: its pointer and its schema.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<(String, &'a Value)> {
    if let Some(pointer) = pointer(reference) {
        return root.pointer(&pointer).map(|schema| (pointer.into_owned(), schema));
    }
    anchors(root).remove(anchor(reference)?)
}

/// The anchor that a local reference names.
pub(super) fn anchor(reference: &str) -> Option<&str> {
    reference.strip_prefix('#').filter(|_| pointer(reference).is_none())
}

/// The first subschema with each `$anchor`, and its pointer.
pub(super) fn anchors(root: &Value) -> HashMap<&str, (String, &Value)> {
    fn find<'a>(schema: &'a Value, pointer: &str, found: &mut HashMap<&'a str, (String, &'a Value)>) {
        let Value::Object(map) = schema else { return };
        if let Some(anchor) = map.get("$anchor").and_then(Value::as_str) {
            found.entry(anchor).or_insert_with(|| (pointer.to_owned(), schema));
        }
        subschemas(map, |step, child| find(child, &format!("{pointer}{step}"), found));
    }
    let mut found = HashMap::new();
    find(root, "", &mut found);
    found
}

/// The array that a keyword holds; empty if it is absent.
pub(super) fn array<'s>(map: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    map.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Escapes a key for use as one step of a JSON pointer.
pub(super) fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) {
        Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_resolve_by_pointer_escape_and_anchor() {
        let root = json!({
            "$defs": {"a/b": {"type": "string"}, "Größe": {"$anchor": "size", "type": "integer"}},
            "enum": [{"$anchor": "size"}]
        });
        assert_eq!(resolve(&root, "#").map(|target| target.1), Some(&root));
        let slash = resolve(&root, "#/$defs/a~1b");
        assert_eq!(slash, Some(("/$defs/a~1b".to_owned(), &root["$defs"]["a/b"])));
        let encoded = resolve(&root, "#/$defs/Gr%C3%B6%C3%9Fe");
        assert_eq!(encoded, resolve(&root, "#size"));
        assert_eq!(encoded.map(|target| target.1), Some(&root["$defs"]["Größe"]));
        assert_eq!(resolve(&root, "#/$defs/none"), None);
        assert_eq!(resolve(&root, "other.json"), None);
    }
}
