//! Generators of schemas for Rust types, and the `$defs` that several generated schemas share.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

use super::{aliases::AliasMark, walk};

/// A generator of schemas for values that are deserialized.
pub fn generator() -> SchemaGenerator {
    settings().for_deserialize().with_transform(AliasMark::default()).into_generator()
}

/// The same, of schemas that list the aliases of fields and variants, for [`accept_aliases`](super::accept_aliases).
pub fn generator_of_accepted() -> SchemaGenerator {
    settings().for_deserialize().with_transform(AliasMark::listing()).into_generator()
}

/// A generator of schemas for values that are serialized.
pub fn generator_for_output() -> SchemaGenerator {
    settings().for_serialize().into_generator()
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    })
}

/// Moves definitions to the root's `$defs` and removes unreferenced ones.
pub fn hoist_defs(root: &mut Value, definitions: Map<String, Value>) {
    let Value::Object(map) = root else { return };
    if !definitions.is_empty()
        && let Value::Object(defs) = map.entry("$defs").or_insert_with(|| Value::Object(Map::new()))
    {
        defs.extend(definitions);
    }
    drop_unused_defs(root);
}

/// Removes definitions that cannot be reached from the root.
pub(super) fn drop_unused_defs(root: &mut Value) {
    let used = reachable_defs(root);
    let Value::Object(map) = root else { return };
    if let Some(Value::Object(defs)) = map.get_mut("$defs") {
        defs.retain(|name, _| used.contains(name));
        if defs.is_empty() {
            map.remove("$defs");
        }
    }
}

fn reachable_defs(root: &Value) -> Vec<String> {
    let mut used: Vec<String> = Vec::new();
    let Some(defs) = root.get("$defs").and_then(Value::as_object) else { return used };
    let mut pending = vec![root];
    while let Some(schema) = pending.pop() {
        let Some(map) = schema.as_object() else { continue };
        if let Some(Value::String(reference)) = map.get("$ref") {
            let target = walk::resolve(root, reference).map(|(pointer, _)| pointer);
            for (name, definition) in defs {
                let pointer = format!("/$defs/{}", walk::escape(name));
                let rest = target.as_deref().and_then(|target| target.strip_prefix(pointer.as_str()));
                if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && !used.contains(name) {
                    used.push(name.clone());
                    pending.push(definition);
                }
            }
        }
        // only the root's own definitions are removed; those of nested schemas count as used
        let is_root = std::ptr::eq(schema, root);
        walk::subschemas(map, |step, child| {
            if !(is_root && step.starts_with("/$defs/")) {
                pending.push(child);
            }
        });
    }
    used
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_reachable_definitions_are_kept() {
        let mut root = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}});
        let defs = json!({
            "A": {"properties": {"b": {"$ref": "#/$defs/B"}}},
            "B": {"items": {"$ref": "#/$defs/B"}},
            "C": {"$ref": "#/$defs/D"},
            "D": {}
        });
        let Value::Object(defs) = defs else { unreachable!() };
        hoist_defs(&mut root, defs);
        let kept: Vec<&String> =
            root["$defs"].as_object().map(|defs| defs.keys().collect()).unwrap_or_default();
        assert_eq!(kept, ["A", "B"]);
    }

    #[test]
    fn empty_definitions_are_removed() {
        let mut root = json!({"type": "object"});
        hoist_defs(&mut root, Map::new());
        assert_eq!(root, json!({"type": "object"}));
        let Value::Object(unused) = json!({"X": {}}) else { unreachable!() };
        hoist_defs(&mut root, unused);
        assert_eq!(root, json!({"type": "object"}));
    }
}
