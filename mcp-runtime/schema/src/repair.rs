//! Repairs harmless mistakes in a value, in one walk over a compiled schema: numbers, booleans, arrays and objects that were
//! sent as text, and whole numbers in the notation of floats, which typed decoding refuses. The same walk adds absent members
//! that have a default.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{
    alternatives::{Intended, intended},
    check::{AddressHasher, MAX_PATTERN_NAME, Validation, holds_containers},
    duplicate_keys::has_duplicate_keys,
    node::{Applicator, ArrayRules, NodeId, ObjectRules, SchemaNode, TypeSet},
    rewrite::wide_digits,
};

/// How deep references and alternatives are followed; deeper values are left unchanged.
const MAX_DEPTH: usize = 64;

/// After this many arrays and objects with others in them, those that were visited are remembered.
const MANY_VISITS: usize = 500;

/// The most members that are added: a message of `{}` a million times would need much more memory than its size.
const MAX_ADDED: usize = 10_000;

/// What a walk changes; `1.0` for an integer always.
#[derive(Debug, Clone, Copy)]
pub(super) enum Changes<'n> {
    /// Nothing else.
    WholeNumbers,
    /// Text for another type.
    Texts,
    /// Optional members that are `null` where their schema has no `null`: they are left out, those with a default only if
    /// `with_default`.
    Nulls { with_default: bool },
    /// Absent members with a default, in a value that conforms: what [`leads_to_default`] says. Added members are complete:
    /// their own schema adds nothing.
    Defaults(&'n [bool]),
}

/// Whether each node has a property with a default, or leads to one: a value may have a million items to which nothing can be
/// added.
pub(super) fn leads_to_default(nodes: &[SchemaNode]) -> Vec<bool> {
    let mut parents = vec![Vec::new(); nodes.len()];
    let (mut next, mut children) = (Vec::new(), Vec::new());
    for (id, node) in nodes.iter().enumerate() {
        let mut properties = node.object.iter().flat_map(|rules| &rules.properties);
        if properties.any(|property| property.default.is_some()) {
            next.push(id);
        }
        node.children(&mut children);
        for child in children.drain(..) {
            if let Some(parents) = parents.get_mut(child) {
                parents.push(id);
            }
        }
    }
    let mut leads = vec![false; nodes.len()];
    while let Some(id) = next.pop() {
        if let (Some(leads @ false), Some(parents)) = (leads.get_mut(id), parents.get(id)) {
            *leads = true;
            next.extend(parents);
        }
    }
    leads
}

/// One walk over a value.
pub(super) struct Repair<'n> {
    nodes: &'n [SchemaNode],
    changes: Changes<'n>,
    visits: usize,
    /// Where several keywords apply to a value that contains its like, they are applied along exponentially many paths.
    visited: HashSet<(NodeId, *const Value), AddressHasher>,
    has_changed: bool,
    added: usize,
    steps_left: usize,
}

impl<'n> Repair<'n> {
    /// A walk of so many steps, as those of a check.
    pub(super) fn new(nodes: &'n [SchemaNode], changes: Changes<'n>, steps_left: usize) -> Self {
        let visited = HashSet::default();
        Self { nodes, changes, visits: 0, visited, has_changed: false, added: 0, steps_left }
    }

    /// Repairs a value of the root schema; returns whether anything changed.
    ///
    /// # Errors
    /// Too many members are absent.
    pub(super) fn run(mut self, value: &mut Value) -> Result<bool, String> {
        self.walk(0, value, 0);
        if self.added > MAX_ADDED {
            return Err(format!("more than {MAX_ADDED} members with a default are absent"));
        }
        if self.steps_left == 0 && matches!(self.changes, Changes::Defaults(_)) {
            return Err("takes too many steps to complete".to_owned());
        }
        Ok(self.has_changed)
    }

    fn walk(&mut self, id: NodeId, value: &mut Value, depth: usize) {
        let Some(node) = self.nodes.get(id).filter(|_| depth <= MAX_DEPTH && self.added <= MAX_ADDED) else {
            return;
        };
        if !self.takes_steps(1) {
            return;
        }
        if matches!(self.changes, Changes::Defaults(leads) if leads.get(id) == Some(&false)) {
            return;
        }
        if matches!(value, Value::Number(_) | Value::String(_)) {
            let Some(repaired) = self.repaired(id, node, value) else { return };
            *value = repaired;
            self.has_changed = true;
        }
        if !matches!(value, Value::Array(_) | Value::Object(_)) || !self.is_first(id, value) {
            return;
        }
        for applicator in &node.applicators {
            match applicator {
                Applicator::Ref(id) => self.walk(*id, value, depth + 1),
                Applicator::AllOf(ids) => ids.iter().for_each(|id| self.walk(*id, value, depth + 1)),
                Applicator::AnyOf(of) | Applicator::OneOf(of) => {
                    // each is compared with the value
                    if !self.takes_steps(of.objects.len()) {
                        return;
                    }
                    if let Intended::One(id) = intended(self.nodes, of, value) {
                        self.walk(id, value, depth + 1);
                    }
                }
                _ => {}
            }
        }
        match (value, &node.array, &node.object) {
            (Value::Array(items), Some(rules), _) => self.walk_items(rules, items, depth),
            (Value::Object(members), _, Some(rules)) => self.walk_members(rules, members, depth),
            _ => {}
        }
    }

    /// Takes some of the steps that are left; returns whether there are more.
    fn takes_steps(&mut self, count: usize) -> bool {
        self.steps_left = self.steps_left.saturating_sub(count);
        self.steps_left > 0
    }

    fn walk_items(&mut self, rules: &ArrayRules, items: &mut [Value], depth: usize) {
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(id) = rules.prefix_items.get(index).copied().or(rules.items) {
                self.walk(id, item, depth + 1);
            }
        }
    }

    fn walk_members(&mut self, rules: &ObjectRules, members: &mut Map<String, Value>, depth: usize) {
        for (name, member) in &mut *members {
            let property = rules.property(name).map(|(_, property)| property.schema);
            let is_short = name.len() <= MAX_PATTERN_NAME;
            if is_short && !self.takes_steps(rules.pattern_steps(name)) {
                return;
            }
            let patterns = rules.pattern_properties.iter().filter(|_| is_short);
            let matching = patterns.filter(|(pattern, _)| pattern.is_match(name)).map(|(_, id)| *id);
            let mut is_known = false;
            for id in property.into_iter().chain(matching) {
                is_known = true;
                self.walk(id, member, depth + 1);
            }
            if let Some(id) = rules.additional_properties.filter(|_| !is_known) {
                self.walk(id, member, depth + 1);
            }
        }
        if let Changes::Nulls { with_default } = self.changes {
            let is_absent = |name: &str| {
                rules.property(name).is_some_and(|(_, property)| {
                    let refuses = self.nodes.get(property.schema).map(|node| node.refuses);
                    !property.required
                        && (with_default || property.default.is_none())
                        && refuses.is_some_and(|types| types.contains(TypeSet::NULL))
                })
            };
            let before = members.len();
            members.retain(|name, member| !member.is_null() || !is_absent(name));
            self.has_changed |= members.len() < before;
        }
        if matches!(self.changes, Changes::Defaults(_)) {
            for property in rules
                .properties
                .iter()
                .filter(|property| !members.contains_key(&property.name))
                .collect::<Vec<_>>()
            {
                if let Some(default) = &property.default {
                    self.added += 1;
                    self.has_changed = true;
                    members.insert(property.name.clone(), default.clone());
                }
            }
        }
    }

    /// Whether a node is applied to an array or object for the first time, as far as that is known.
    fn is_first(&mut self, id: NodeId, value: &Value) -> bool {
        if !holds_containers(value) {
            return true;
        }
        self.visits += 1;
        self.visits < MANY_VISITS || self.visited.insert((id, std::ptr::from_ref(value)))
    }

    fn conforms(&mut self, id: NodeId, value: &Value) -> bool {
        let mut validation = Validation::new(self.nodes, false);
        validation.steps_left = self.steps_left;
        let conforms = validation.matches(id, value);
        self.steps_left = validation.steps_left;
        conforms
    }

    /// What a number or a text that the node refuses was meant to be, if the node leaves no doubt about that.
    fn repaired(&mut self, id: NodeId, node: &SchemaNode, value: &Value) -> Option<Value> {
        let allowed = TypeSet::ANY.without(node.refuses).without(TypeSet::NULL);
        let text = match value {
            Value::Number(number) => return whole_number(number, allowed).map(Value::Number),
            Value::String(text) if matches!(self.changes, Changes::Texts) => text.trim(),
            _ => return None,
        };
        let is_container = text.starts_with(['{', '[']);
        if allowed.contains(TypeSet::STRING) {
            // one of some names, such as those of variants without data
            if !is_container || node.accepts.contains(TypeSet::STRING) || self.conforms(id, value) {
                return None;
            }
        }
        let read: Value = serde_json::from_str(text).ok()?;
        // readers could differ on it
        if !allowed.contains(TypeSet::of(&read)) || (is_container && has_duplicate_keys(text)) {
            return None;
        }
        match &read {
            Value::String(_) | Value::Null => None,
            // the digits stay in the text
            Value::Number(number) if number.is_f64() && wide_digits(text).is_none() => {
                let fits = allowed.contains(TypeSet::NUMBER);
                if fits { Some(read) } else { whole_number(number, allowed).map(Value::Number) }
            }
            _ => Some(read),
        }
    }
}

/// The integer that a float without fraction is, where integers are allowed and fractions are not, and if it fits into 64 bits.
fn whole_number(number: &Number, allowed: TypeSet) -> Option<Number> {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    if !allowed.contains(TypeSet::INTEGER) || allowed.contains(TypeSet::NUMBER) {
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

    use super::super::Validator;
    use super::*;

    fn coerced(schema: &Value, mut value: Value, strict: bool) -> Value {
        // as text: `30.0` and `30` must count as different
        let before = value.to_string();
        let changed = Validator::compile(schema).expect("a schema").repair(&mut value, strict);
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

    #[test]
    fn json_in_text_is_read_where_only_some_texts_are_allowed() {
        let object = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let named = json!({"oneOf": [{"const": "off"}, object]});
        assert_eq!(coerced(&named, json!("{\"n\":\"1\"}"), false), json!({"n": 1}));
        assert_eq!(coerced(&named, json!("{\"n\":\"1\"}"), true), json!("{\"n\":\"1\"}"));
        assert_eq!(coerced(&named, json!("off"), false), json!("off"));
        let untagged = json!({"anyOf": [{"type": "integer"}, object]});
        assert_eq!(coerced(&untagged, json!("42.0"), false), json!(42));
        assert_eq!(coerced(&untagged, json!("{\"n\":2}"), false), json!({"n": 2}));
        let text = json!({"anyOf": [{"type": "string"}, object]});
        assert_eq!(coerced(&text, json!("{\"n\":2}"), false), json!("{\"n\":2}"));
    }

    #[test]
    fn optional_members_that_are_null_where_null_is_not_allowed_are_left_out() {
        let inner = json!({
            "type": "object", "required": ["must"],
            "properties": {
                "must": {"type": "string"}, "may": {"type": "string"}, "null": {"type": ["string", "null"]},
                "any": {}, "choice": {"enum": ["a"]}, "default": {"type": "integer", "default": 1},
                "list": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
                "one": {"oneOf": [{"type": "integer"}, {"$ref": "#/$defs/Inner"}]},
            }
        });
        let schema = json!({"$ref": "#/$defs/Inner", "$defs": {"Inner": inner}});
        let nulls = json!({
            "must": null, "may": null, "null": null, "any": null, "choice": null, "default": null, "unknown": null
        });
        let kept = |with_default: bool| {
            let mut kept = json!({"must": null, "null": null, "any": null, "unknown": null});
            if !with_default {
                kept["default"] = Value::Null;
            }
            kept
        };
        for with_default in [false, true] {
            let (mut sent, mut expected) = (nulls.clone(), kept(with_default));
            (sent["list"], expected["list"]) = (json!([nulls, null]), json!([kept(with_default), null]));
            (sent["one"], expected["one"]) = (nulls.clone(), kept(with_default));
            let validator = Validator::compile(&schema).expect("a schema");
            assert!(validator.remove_nulls(&mut sent, with_default));
            assert_eq!(sent, expected);
            assert!(!validator.remove_nulls(&mut sent, with_default));
        }
    }

    fn filled(schema: &Value, mut value: Value) -> Value {
        Validator::compile(schema).expect("a schema").add_defaults(&mut value).expect("filled");
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
        assert!(Validator::compile(&list).expect("a schema").add_defaults(&mut value).is_err());
    }
}
