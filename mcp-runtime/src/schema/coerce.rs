//! Coercion of values of a wrong type that models often send: `"42"` for a number, a JSON string for an object.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
};

use serde_json::{Map, Number, Value};

use super::check::{AddressHasher, MAX_PATTERN_NAME, holds_containers};
use super::duplicate_keys::has_duplicate_keys;
use super::node::TypeSet;
use super::pattern::TextPattern;
use super::rewrite::wide_digits;
use super::{equality, walk};

/// How deep references and alternatives are followed; deeper values are left unchanged.
const MAX_DEPTH: usize = 64;

/// Converts the nodes of a value whose type is wrong and whose intended value is unambiguous.
///
/// `30.0` for an integer is always converted; strings only unless `strict`. Returns whether anything changed.
pub(crate) fn coerce(schema: &Value, root: &Value, value: &mut Value, strict: bool) -> bool {
    Coercion::new(root, strict).coerce(schema, value, 0)
}

/// Whether text is that of an object, to which it is coerced where the schema has an object.
#[cfg(feature = "http")]
pub(crate) fn is_object_text(text: &str) -> bool {
    parse_container(text).is_some_and(|value| value.is_object())
}

/// The value of JSON text, unless readers could differ on it.
fn parse_container(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|_| !has_duplicate_keys(text))
}

/// The conversions that a schema allows, determined once for each subschema: a value may have a million items.
pub(super) struct Coercion<'s> {
    root: &'s Value,
    strict: bool,
    /// The keywords of subschemas, by address.
    keywords: RefCell<HashMap<*const Value, Rc<Keywords<'s>>, AddressHasher>>,
    visits: Visits,
}

/// The subschemas that have been applied to arrays and objects, by address, once there were many: where several keywords
/// apply to a value that contains its like, they are applied along exponentially many paths.
#[derive(Default)]
struct Visits {
    count: Cell<usize>,
    seen: RefCell<HashSet<(*const Value, *const Value), AddressHasher>>,
}

impl Visits {
    /// Whether the subschema is applied to the value for the first time, as far as that is known.
    fn is_first(&self, schema: &Value, value: &Value) -> bool {
        const MANY: usize = 500;
        if !holds_containers(value) {
            return true;
        }
        self.count.set(self.count.get() + 1);
        self.count.get() < MANY || self.seen.borrow_mut().insert((schema, value))
    }
}

/// The keywords that apply other schemas to the value itself.
const IN_PLACE: [&str; 7] = ["$ref", "allOf", "anyOf", "dependentSchemas", "if", "not", "oneOf"];

/// The keywords of a subschema that apply others, to its value or to what is in that.
#[derive(Default)]
struct Keywords<'s> {
    /// The types that the subschema allows, once that is known.
    types: Cell<Option<TypeSet>>,
    /// The target of `$ref`.
    target: Option<&'s Value>,
    all_of: &'s [Value],
    /// `anyOf` and `oneOf`.
    alternatives: [&'s [Value]; 2],
    prefix_items: &'s [Value],
    items: Option<&'s Value>,
    properties: Option<&'s Map<String, Value>>,
    pattern_properties: Vec<(TextPattern, &'s Value)>,
    additional_properties: Option<&'s Value>,
    /// The properties with a `const`.
    constants: Vec<(&'s str, &'s Value)>,
    required: Vec<&'s str>,
}

impl<'s> Keywords<'s> {
    fn new(root: &'s Value, schema: &'s Value) -> Self {
        let Value::Object(map) = schema else { return Self::default() };
        let reference = map.get("$ref").and_then(Value::as_str);
        let properties = map.get("properties").and_then(Value::as_object);
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        let constants = properties.into_iter().flatten();
        // without keywords in place, only those of the object evaluate its members, as in the compiled schema
        let has_others = IN_PLACE.iter().any(|keyword| map.contains_key(*keyword));
        let unevaluated = map.get("unevaluatedProperties").filter(|_| !has_others);
        Self {
            types: Cell::new(None),
            target: reference.and_then(|reference| walk::resolve(root, reference)).map(|(_, schema)| schema),
            all_of: walk::array(map, "allOf"),
            alternatives: [walk::array(map, "anyOf"), walk::array(map, "oneOf")],
            prefix_items: walk::array(map, "prefixItems"),
            items: map.get("items"),
            properties,
            pattern_properties: patterns
                .into_iter()
                .flatten()
                .filter_map(|(pattern, schema)| Some((TextPattern::linked(pattern).ok()?, schema)))
                .collect(),
            additional_properties: map.get("additionalProperties").or(unevaluated),
            constants: constants
                .filter_map(|(name, property)| Some((name.as_str(), property.get("const")?)))
                .collect(),
            required: walk::array(map, "required").iter().filter_map(Value::as_str).collect(),
        }
    }
}

impl<'s> Coercion<'s> {
    pub(super) fn new(root: &'s Value, strict: bool) -> Self {
        Self { root, strict, keywords: RefCell::default(), visits: Visits::default() }
    }

    fn keywords(&self, schema: &'s Value) -> Rc<Keywords<'s>> {
        let mut known = self.keywords.borrow_mut();
        let new = || Rc::new(Keywords::new(self.root, schema));
        known.entry(std::ptr::from_ref(schema)).or_insert_with(new).clone()
    }

    fn coerce(&self, schema: &'s Value, value: &mut Value, depth: usize) -> bool {
        let is_right = match value {
            Value::Null | Value::Bool(_) => true,
            Value::Number(number) => !number.is_f64(),
            _ => false,
        };
        if is_right || depth > MAX_DEPTH || !self.visits.is_first(schema, value) {
            return false;
        }
        let keywords = self.keywords(schema);
        let mut changed = self.convert(schema, &keywords, value, depth);
        if let Some(target) = keywords.target {
            changed |= self.coerce(target, value, depth + 1);
        }
        for part in keywords.all_of {
            changed |= self.coerce(part, value, depth + 1);
        }
        for branches in keywords.alternatives {
            if let Some(branch) = self.branch(branches, value, depth) {
                changed |= self.coerce(branch, value, depth + 1);
            }
        }
        match value {
            Value::Array(items) => changed |= self.coerce_items(&keywords, items, depth),
            Value::Object(members) => changed |= self.coerce_members(&keywords, members, depth),
            _ => {}
        }
        changed
    }

    fn coerce_items(&self, keywords: &Keywords<'s>, items: &mut [Value], depth: usize) -> bool {
        let prefix = keywords.prefix_items;
        let mut changed = false;
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(schema) = prefix.get(index).or(keywords.items) {
                changed |= self.coerce(schema, item, depth + 1);
            }
        }
        changed
    }

    fn coerce_members(
        &self,
        keywords: &Keywords<'s>,
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> bool {
        let mut changed = false;
        for (name, member) in members {
            let mut is_known = false;
            if let Some(schema) = keywords.properties.and_then(|properties| properties.get(name)) {
                is_known = true;
                changed |= self.coerce(schema, member, depth + 1);
            }
            if name.len() <= MAX_PATTERN_NAME {
                for (pattern, schema) in &keywords.pattern_properties {
                    if pattern.is_match(name) {
                        is_known = true;
                        changed |= self.coerce(schema, member, depth + 1);
                    }
                }
            }
            if let Some(schema) = keywords.additional_properties.filter(|_| !is_known) {
                changed |= self.coerce(schema, member, depth + 1);
            }
        }
        changed
    }

    /// Converts one value if its type is wrong and exactly one type is possible.
    fn convert(&self, schema: &'s Value, keywords: &Keywords<'s>, value: &mut Value, depth: usize) -> bool {
        if let Value::Number(number) = &*value {
            let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return false };
            // `1.0` is an integer by JSON Schema, but is not deserialized as one
            let allowed = self.types_of(schema, keywords, depth);
            let only_integers = allowed.contains(TypeSet::INTEGER) && !allowed.contains(TypeSet::NUMBER);
            return only_integers
                && integer_of(float).is_some_and(|integer| {
                    *value = Value::Number(integer);
                    true
                });
        }
        let Value::String(text) = &*value else { return false };
        if self.strict {
            return false;
        }
        let allowed = self.types_of(schema, keywords, depth);
        if allowed.contains(TypeSet::STRING) {
            return false;
        }
        let expected = allowed.without(TypeSet::NULL);
        let converted = if expected == TypeSet::INTEGER {
            parse_number(text)
                .and_then(|number| match number.as_f64() {
                    // the digits stay in the text
                    Some(_) if wide_digits(text).is_some() => Some(number),
                    Some(float) if number.is_f64() => integer_of(float),
                    _ => Some(number),
                })
                .map(Value::Number)
        } else if expected == TypeSet::NUMBER {
            parse_number(text).map(Value::Number)
        } else if expected == TypeSet::BOOLEAN {
            text.parse().ok().map(Value::Bool)
        } else if expected != TypeSet::NONE && TypeSet::ARRAY.union(TypeSet::OBJECT).contains(expected) {
            parse_container(text).filter(|parsed| expected.contains(TypeSet::of(parsed)))
        } else {
            None
        };
        let Some(converted) = converted else { return false };
        *value = converted;
        true
    }

    /// The types that the keywords of a schema allow.
    fn types(&self, schema: &'s Value, depth: usize) -> TypeSet {
        self.types_of(schema, &self.keywords(schema), depth)
    }

    fn types_of(&self, schema: &'s Value, keywords: &Keywords<'s>, depth: usize) -> TypeSet {
        if let Some(known) = keywords.types.get() {
            return known;
        }
        let types = self.compute_types(schema, depth);
        // deeper than this, types are cut short
        if depth <= MAX_DEPTH / 2 {
            keywords.types.set(Some(types));
        }
        types
    }

    fn compute_types(&self, schema: &'s Value, depth: usize) -> TypeSet {
        let map = match schema {
            Value::Bool(false) => return TypeSet::NONE,
            Value::Object(map) if depth <= MAX_DEPTH => map,
            _ => return TypeSet::ANY,
        };
        let mut types = map.get("type").and_then(TypeSet::parse).unwrap_or(TypeSet::ANY);
        if let Some(Value::Array(choices)) = map.get("enum") {
            let of_choices =
                choices.iter().fold(TypeSet::NONE, |types, value| types.union(TypeSet::of(value)));
            types = types.intersection(of_choices);
        }
        if let Some(constant) = map.get("const") {
            types = types.intersection(TypeSet::of(constant));
        }
        if let Some(target) = self.keywords(schema).target {
            types = types.intersection(self.types(target, depth + 1));
        }
        for part in walk::array(map, "allOf") {
            types = types.intersection(self.types(part, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = walk::array(map, keyword);
            if !branches.is_empty() {
                let union = |types: TypeSet, branch| types.union(self.types(branch, depth + 1));
                types = types.intersection(branches.iter().fold(TypeSet::NONE, union));
            }
        }
        types
    }

    /// The only alternative whose types and constants match a value.
    pub(super) fn branch(&self, branches: &'s [Value], value: &Value, depth: usize) -> Option<&'s Value> {
        let own = TypeSet::of(value);
        let is_candidate = |branch: &&'s Value| {
            let keywords = self.keywords(branch);
            self.types_of(branch, &keywords, depth + 1).contains(own) && self.tags_match(keywords, value)
        };
        let mut candidates = branches.iter().filter(is_candidate);
        candidates.next().filter(|_| candidates.next().is_none())
    }

    /// Whether the value has the constants of the branch's properties, and its required properties.
    fn tags_match(&self, mut keywords: Rc<Keywords<'s>>, value: &Value) -> bool {
        let Some(members) = value.as_object() else { return true };
        if let Some(target) = keywords.target {
            keywords = self.keywords(target);
        }
        if keywords.properties.is_none() {
            return true;
        }
        let has_constant = |(name, constant): &(&str, &Value)| {
            members.get(*name).is_none_or(|member| equality::equal(constant, member))
        };
        keywords.constants.iter().all(has_constant)
            && keywords.required.iter().all(|name| members.contains_key(*name))
    }
}

/// Parses a text that is a JSON number.
fn parse_number(text: &str) -> Option<Number> {
    serde_json::from_str(text.trim()).ok()
}

/// A float without fraction as an integer, if it fits into 64 bits.
pub(super) fn integer_of(float: f64) -> Option<Number> {
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
        // as text: `30.0` and `30` must count as different
        let before = value.to_string();
        let changed = coerce(schema, schema, &mut value, strict);
        let after = value.to_string();
        assert_eq!(changed, before != after);
        value
    }

    #[test]
    fn unambiguous_values_are_converted() {
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
    fn ambiguous_and_wrong_values_are_left_unchanged() {
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
    fn alternatives_are_selected_by_type_and_tag() {
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
        let rest = json!({"properties": {"y": {}}, "unevaluatedProperties": {"type": "integer"}});
        assert_eq!(coerced(&rest, json!({"x": 1.0, "y": 1.0}), true), json!({"x": 1, "y": 1.0}));
    }

    #[test]
    fn large_integers_keep_their_digits() {
        let schema = json!({"type": "integer"});
        assert_eq!(coerced(&schema, json!("18446744073709551615"), false), json!(u64::MAX));
        assert_eq!(coerced(&schema, json!("-9223372036854775808"), false), json!(i64::MIN));
        assert_eq!(coerced(&schema, json!(9007199254740992.0), true).to_string(), "9007199254740992");
    }
}
