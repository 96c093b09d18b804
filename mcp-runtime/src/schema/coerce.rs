//! Rewrites the harmless slips of models: `"42"` for a number, a JSON string for an object.
//!
//! `extract` calls this on arguments that failed to decode, and decodes once more if anything changed.

use regex_lite::Regex;
use serde_json::{Map, Number, Value};

use super::node::Types;
use super::{order, walk};

/// How deep references and alternatives are followed before a value is left as it is.
const DEEPEST: usize = 64;

/// Rewrites the nodes of a value that do not fit a schema and can only have meant one thing.
///
/// `30.0` for an integer is always rewritten; strings only unless `strict`. Returns whether anything changed.
pub(crate) fn coerce(schema: &Value, root: &Value, value: &mut Value, strict: bool) -> bool {
    Coercion { root, strict }.node(schema, value, 0)
}

struct Coercion<'s> {
    root: &'s Value,
    strict: bool,
}

impl<'s> Coercion<'s> {
    fn node(&self, schema: &'s Value, value: &mut Value, depth: usize) -> bool {
        if depth > DEEPEST {
            return false;
        }
        let mut changed = self.rewrite(self.types(schema, depth), value);
        let Value::Object(map) = schema else { return changed };
        if let Some(target) = self.target(map) {
            changed |= self.node(target, value, depth + 1);
        }
        for part in list(map, "allOf") {
            changed |= self.node(part, value, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branch) = self.branch(list(map, keyword), value, depth) {
                changed |= self.node(branch, value, depth + 1);
            }
        }
        match value {
            Value::Array(items) => changed |= self.items(map, items, depth),
            Value::Object(members) => changed |= self.members(map, members, depth),
            _ => {}
        }
        changed
    }

    fn items(&self, map: &'s Map<String, Value>, items: &mut [Value], depth: usize) -> bool {
        let prefix = list(map, "prefixItems");
        let mut changed = false;
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(schema) = prefix.get(index).or_else(|| map.get("items")) {
                changed |= self.node(schema, item, depth + 1);
            }
        }
        changed
    }

    fn members(&self, map: &'s Map<String, Value>, members: &mut Map<String, Value>, depth: usize) -> bool {
        let properties = map.get("properties").and_then(Value::as_object);
        let patterns: Vec<(Regex, &Value)> = map
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(pattern, schema)| Some((Regex::new(pattern).ok()?, schema)))
            .collect();
        let mut changed = false;
        for (name, member) in members {
            let mut schemas: Vec<&Value> =
                properties.and_then(|properties| properties.get(name)).into_iter().collect();
            schemas.extend(
                patterns.iter().filter(|(pattern, _)| pattern.is_match(name)).map(|(_, schema)| *schema),
            );
            if schemas.is_empty() {
                schemas.extend(map.get("additionalProperties"));
            }
            for schema in schemas {
                changed |= self.node(schema, member, depth + 1);
            }
        }
        changed
    }

    /// Rewrites one value if its type is wrong and the right one is the only one possible.
    fn rewrite(&self, allowed: Types, value: &mut Value) -> bool {
        if let Value::Number(number) = &*value {
            // `1.0` is an integer to JSON Schema but not to typed decoding.
            let only_integers = allowed.contains(Types::INTEGER) && !allowed.contains(Types::NUMBER);
            let whole = number.as_f64().filter(|_| number.is_f64() && only_integers).and_then(integer);
            return whole.is_some_and(|whole| {
                *value = Value::Number(whole);
                true
            });
        }
        let Value::String(text) = &*value else { return false };
        if self.strict || allowed.contains(Types::STRING) {
            return false;
        }
        let wanted = allowed.without(Types::NULL);
        let new = if wanted == Types::INTEGER {
            number(text)
                .and_then(|number| match number.as_f64() {
                    Some(float) if number.is_f64() => integer(float),
                    _ => Some(number),
                })
                .map(Value::Number)
        } else if wanted == Types::NUMBER {
            number(text).map(Value::Number)
        } else if wanted == Types::BOOLEAN {
            text.parse().ok().map(Value::Bool)
        } else if wanted != Types::NONE && Types::ARRAY.union(Types::OBJECT).contains(wanted) {
            serde_json::from_str::<Value>(text).ok().filter(|parsed| wanted.contains(Types::of(parsed)))
        } else {
            None
        };
        let Some(new) = new else { return false };
        *value = new;
        true
    }

    /// The types that a schema allows, as far as its keywords say.
    fn types(&self, schema: &'s Value, depth: usize) -> Types {
        let map = match schema {
            Value::Bool(false) => return Types::NONE,
            Value::Object(map) if depth <= DEEPEST => map,
            _ => return Types::ANY,
        };
        let mut types = map.get("type").and_then(Types::parse).unwrap_or(Types::ANY);
        let of =
            |values: &[Value]| values.iter().fold(Types::NONE, |types, value| types.union(Types::of(value)));
        if let Some(Value::Array(choices)) = map.get("enum") {
            types = types.intersection(of(choices));
        }
        if let Some(constant) = map.get("const") {
            types = types.intersection(Types::of(constant));
        }
        if let Some(target) = self.target(map) {
            types = types.intersection(self.types(target, depth + 1));
        }
        for part in list(map, "allOf") {
            types = types.intersection(self.types(part, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(map, keyword);
            if !branches.is_empty() {
                let union = |types: Types, branch| types.union(self.types(branch, depth + 1));
                types = types.intersection(branches.iter().fold(Types::NONE, union));
            }
        }
        types
    }

    fn target(&self, map: &Map<String, Value>) -> Option<&'s Value> {
        walk::resolve(self.root, map.get("$ref")?.as_str()?).map(|(_, schema)| schema)
    }

    /// The one alternative that a value can have been meant for.
    fn branch(&self, branches: &'s [Value], value: &Value, depth: usize) -> Option<&'s Value> {
        let fits = |branch: &&Value| {
            self.types(branch, depth + 1).contains(Types::of(value)) && self.tags_fit(branch, value)
        };
        let mut fitting = branches.iter().filter(fits);
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Whether the fixed values of a branch's properties are those of the value, and its required ones are there.
    fn tags_fit(&self, branch: &'s Value, value: &Value) -> bool {
        let (Some(map), Some(members)) = (branch.as_object(), value.as_object()) else { return true };
        let map = self.target(map).and_then(Value::as_object).unwrap_or(map);
        let Some(properties) = map.get("properties").and_then(Value::as_object) else { return true };
        let tags =
            properties.iter().all(|(name, property)| match (property.get("const"), members.get(name)) {
                (Some(tag), Some(found)) => order::equal(tag, found),
                _ => true,
            });
        let required = list(map, "required").iter().filter_map(Value::as_str);
        tags && required.into_iter().all(|name| members.contains_key(name))
    }
}

fn list<'s>(map: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    map.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A text that is a JSON number and nothing else.
fn number(text: &str) -> Option<Number> {
    serde_json::from_str(text.trim()).ok()
}

/// A float without fraction as an integer, where 64 bits hold it.
fn integer(float: f64) -> Option<Number> {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    if float.fract() != 0.0 {
        return None;
    }
    if (-TWO_POW_63..TWO_POW_63).contains(&float) {
        return Some((float as i64).into());
    }
    (0.0..TWO_POW_63 * 2.0).contains(&float).then(|| (float as u64).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(schema: &Value, mut value: Value, strict: bool) -> Value {
        // As text, since `30.0` and `30` must count as different.
        let before = value.to_string();
        let changed = coerce(schema, schema, &mut value, strict);
        let after = value.to_string();
        assert_eq!(changed, before != after);
        value
    }

    #[test]
    fn t16_slips_are_rewritten() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer"}, "ratio": {"type": ["number", "null"]}, "on": {"type": "boolean"},
                "filter": {"$ref": "#/$defs/Filter"}, "tags": {"type": "array", "items": {"type": "integer"}},
                "name": {"type": "string"}, "level": {"enum": [1, 2]}
            },
            "$defs": {"Filter": {"type": "object", "properties": {"n": {"type": "integer"}}}}
        });
        let sent = json!({
            "limit": "42", "ratio": "4.5", "on": "true", "filter": "{\"n\": \"-1\"}", "tags": "[1, \"2\", 3.0]",
            "name": "5", "level": "2"
        });
        let expected = json!({
            "limit": 42, "ratio": 4.5, "on": true, "filter": {"n": -1}, "tags": [1, 2, 3], "name": "5", "level": 2
        });
        assert_eq!(coerced(&schema, sent.clone(), false), expected);
        assert_eq!(coerced(&schema, sent.clone(), true), sent);
        let whole = coerced(&schema, json!({"limit": 30.0, "tags": [1e2], "ratio": 2.0}), true);
        assert_eq!(whole.to_string(), json!({"limit": 30, "tags": [100], "ratio": 2.0}).to_string());
    }

    #[test]
    fn t16_what_is_ambiguous_or_wrong_stays() {
        let cases = [
            (json!({"type": ["integer", "string"]}), json!("42")),
            (json!({"type": ["integer", "boolean"]}), json!("42")),
            (json!({}), json!("42")),
            (json!({"type": "integer"}), json!("4.5")),
            (json!({"type": "integer"}), json!(4.5)),
            (json!({"type": "integer"}), json!("forty")),
            (json!({"type": "integer"}), json!("")),
            (json!({"type": "integer"}), json!(1e300)),
            (json!({"type": "boolean"}), json!("True")),
            (json!({"type": "boolean"}), json!(1)),
            (json!({"type": "object"}), json!("[1]")),
            (json!({"type": "array"}), json!("1, 2")),
            (json!({"type": "string"}), json!(42)),
            (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), json!("42")),
        ];
        for (schema, value) in cases {
            assert_eq!(coerced(&schema, value.clone(), false), value, "{schema}");
        }
    }

    #[test]
    fn t16_alternatives_are_entered_by_type_and_tag() {
        let schema = json!({"oneOf": [
            {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "b"}, "n": {"type": "string"}}, "required": ["kind"]}
        ]});
        assert_eq!(coerced(&schema, json!({"kind": "a", "n": "1"}), false), json!({"kind": "a", "n": 1}));
        assert_eq!(coerced(&schema, json!({"kind": "b", "n": "1"}), false), json!({"kind": "b", "n": "1"}));
        let untagged = json!({"anyOf": [
            {"type": "object", "properties": {"n": {"type": "integer"}}},
            {"type": "object", "properties": {"n": {"type": "boolean"}}}
        ]});
        assert_eq!(coerced(&untagged, json!({"n": "1"}), false), json!({"n": "1"}));
        let map = json!({"additionalProperties": {"type": "integer"}});
        assert_eq!(coerced(&map, json!({"x": "1"}), false), json!({"x": 1}));
    }

    #[test]
    fn large_integers_keep_their_digits() {
        let schema = json!({"type": "integer"});
        assert_eq!(coerced(&schema, json!("18446744073709551615"), false), json!(u64::MAX));
        assert_eq!(coerced(&schema, json!("-9223372036854775808"), false), json!(i64::MIN));
        assert_eq!(coerced(&schema, json!(9007199254740992.0), true).to_string(), "9007199254740992");
    }
}
