//! Adds the members that are absent and whose schema has a `default`, as that schema promises.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{coerce::Coercion, walk};

/// How deep references and values are followed.
const MAX_DEPTH: usize = 64;

/// The most members that are added: a message of `{}` a million times would need much more memory than its size.
const MAX_ADDED: usize = 10_000;

/// The most subschemas that are applied: where several keywords apply to a value that contains its like, they are applied
/// along exponentially many paths.
const MAX_STEPS: usize = 500_000;

/// Whether a schema has a `default` on a property.
pub(crate) fn has_defaults(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let mut found = map.contains_key("default");
    walk::subschemas(map, |_, child| found |= has_defaults(child));
    found
}

/// Adds the absent members of a value that conforms to the schema. Added members are complete: their own schema adds
/// nothing to them.
///
/// # Errors
/// Too many members are absent.
pub(crate) fn fill_defaults(root: &Value, value: &mut Value) -> Result<(), String> {
    let mut filling = Filling {
        coercion: Coercion::new(root, true),
        root,
        leads_to_default: HashMap::new(),
        added: 0,
        steps: 0,
    };
    filling.fill(root, value, 0);
    if filling.added > MAX_ADDED {
        return Err(format!("more than {MAX_ADDED} members with a default are absent"));
    }
    if filling.steps > MAX_STEPS {
        return Err("too many values inside of each other have members with a default".to_owned());
    }
    Ok(())
}

struct Filling<'s> {
    coercion: Coercion<'s>,
    root: &'s Value,
    /// Whether a subschema, by address, has a `default` in it or in what it refers to: a value may have a million items
    /// to which nothing can be added.
    leads_to_default: HashMap<*const Value, bool>,
    added: usize,
    steps: usize,
}

impl<'s> Filling<'s> {
    fn fill(&mut self, schema: &'s Value, value: &mut Value, depth: usize) {
        let Value::Object(map) = schema else { return };
        self.steps += 1;
        if depth > MAX_DEPTH || self.added > MAX_ADDED || self.steps > MAX_STEPS {
            return;
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str)
            && let Some((_, target)) = walk::resolve(self.root, reference)
        {
            self.fill(target, value, depth + 1);
        }
        for part in walk::array(map, "allOf") {
            self.fill(part, value, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branch) = self.coercion.branch(walk::array(map, keyword), value, depth) {
                self.fill(branch, value, depth + 1);
            }
        }
        match value {
            Value::Object(members) => self.fill_members(map, members, depth),
            Value::Array(items) => {
                let prefix = walk::array(map, "prefixItems");
                let rest = map.get("items").filter(|schema| self.leads_to_default(schema));
                let rest_from = if rest.is_none() { prefix.len() } else { usize::MAX };
                for (index, item) in items.iter_mut().enumerate().take(rest_from) {
                    if let Some(schema) = prefix.get(index).or(rest) {
                        self.fill(schema, item, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn leads_to_default(&mut self, schema: &'s Value) -> bool {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.leads_to_default.get(&address) {
            return *known;
        }
        let mut seen = HashSet::new();
        let mut next = vec![schema];
        let mut found = false;
        while let Some(part) = next.pop() {
            let Value::Object(map) = part else { continue };
            if !seen.insert(std::ptr::from_ref(part)) {
                continue;
            }
            found |= map.contains_key("default");
            walk::subschemas(map, |_, child| next.push(child));
            let reference = map.get("$ref").and_then(Value::as_str);
            next.extend(
                reference.and_then(|reference| walk::resolve(self.root, reference)).map(|(_, to)| to),
            );
        }
        self.leads_to_default.insert(address, found);
        found
    }

    fn fill_members(&mut self, map: &'s Map<String, Value>, members: &mut Map<String, Value>, depth: usize) {
        let properties = map.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            match members.get_mut(name) {
                Some(member) => {
                    if self.leads_to_default(schema) {
                        self.fill(schema, member, depth + 1);
                    }
                }
                None => {
                    if let Some(default) = schema.get("default") {
                        self.added += 1;
                        members.insert(name.clone(), default.clone());
                    }
                }
            }
        }
        if let Some(schema) = map.get("additionalProperties").filter(|schema| self.leads_to_default(schema)) {
            let is_other = |name: &String| properties.is_none_or(|properties| !properties.contains_key(name));
            for (_, member) in members.iter_mut().filter(|(name, _)| is_other(name)) {
                self.fill(schema, member, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: &Value, mut value: Value) -> Value {
        fill_defaults(schema, &mut value).expect("filled");
        value
    }

    #[test]
    fn absent_members_are_added_at_every_depth() {
        let schema = json!({
            "properties": {
                "limit": {"type": "integer", "default": 10},
                "filter": {"properties": {"tone": {"default": "formal"}}},
                "list": {"items": {"$ref": "#/$defs/Item"}},
                "map": {"additionalProperties": {"$ref": "#/$defs/Item"}},
                "shape": {"oneOf": [
                    {"properties": {"kind": {"const": "a"}, "n": {"default": 1}}, "required": ["kind"]},
                    {"properties": {"kind": {"const": "b"}, "n": {"default": 2}}, "required": ["kind"]}
                ]},
                "whole": {"default": {"x": {}}, "properties": {"x": {"default": 1}}}
            },
            "$defs": {"Item": {"allOf": [{"properties": {"n": {"default": 7}}}]}}
        });
        let sent = json!({"filter": {}, "list": [{}, {"n": 0}], "map": {"k": {}}, "shape": {"kind": "b"}});
        assert_eq!(
            filled(&schema, sent),
            json!({
                "limit": 10, "filter": {"tone": "formal"}, "list": [{"n": 7}, {"n": 0}], "map": {"k": {"n": 7}},
                "shape": {"kind": "b", "n": 2}, "whole": {"x": {}}
            })
        );
        assert_eq!(filled(&schema, json!({"limit": null}))["limit"], Value::Null);
        assert!(has_defaults(&schema));
        assert!(!has_defaults(
            &json!({"properties": {"default": {"type": "string"}}, "enum": [{"default": 1}]})
        ));
    }

    #[test]
    fn defaults_beside_schemas_without_one_are_found() {
        let schema = json!({
            "properties": {
                "list": {
                    "prefixItems": [true, {"properties": {"n": {"default": 1}, "any": true}}],
                    "items": {"additionalProperties": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]}}
                },
                "plain": {"items": {"type": "object"}}
            },
            "$defs": {"Item": {"type": "object", "properties": {"x": true, "n": {"default": 2}, "y": false}}}
        });
        assert_eq!(
            filled(&schema, json!({"list": [{}, {}, {"k": {}, "l": null}], "plain": [{}]})),
            json!({"list": [{}, {"n": 1}, {"k": {"n": 2}, "l": null}], "plain": [{}]})
        );
    }

    #[test]
    fn recursive_schemas_and_long_lists_are_bounded() {
        let schema = json!({"properties": {"next": {"$ref": "#", "default": {}}, "n": {"default": 1}}});
        assert_eq!(filled(&schema, json!({})), json!({"next": {}, "n": 1}));
        let list = json!({"properties": {"list": {"items": schema}}});
        let mut value = json!({"list": vec![json!({}); 100_000]});
        assert!(fill_defaults(&list, &mut value).is_err());
    }
}
