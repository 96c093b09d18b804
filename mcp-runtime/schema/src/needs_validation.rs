//! Determines what of a schema decoding into Rust types enforces, so that a validator looks at the rest alone.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    alternatives::not_null,
    node::{Applicator, NodeId, SchemaNode, TypeSet},
};

/// What decoding enforces of the keywords of one node, those of its subschemas aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Enforcement {
    #[default]
    All,
    /// All of a variant of an enum, which is an object of one key, and not all of a struct.
    OfVariant,
    Some,
}

/// What decoding enforces of a schema.
///
/// The schema must be unchanged from schemars: [`minimize`](super::minimize) removes the numeric `format`, which alone
/// distinguishes the bounds of `u32` from those that a user set. Without it, every bound counts as unenforced.
pub(super) fn enforcement(schema: &Map<String, Value>) -> Enforcement {
    if !schema.iter().all(|(keyword, value)| is_enforced(schema, keyword, value)) {
        return Enforcement::Some;
    }
    // from `deny_unknown_fields`, which is enforced, or written by hand, which is not: both look the same
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Enforcement::All;
    }
    let members = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    if members == 1 && required == 1 { Enforcement::OfVariant } else { Enforcement::Some }
}

fn is_enforced(schema: &Map<String, Value>, keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" | "required" | "$ref" | "properties" | "$defs" | "items" | "additionalProperties" => true,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
        | "format" | "$comment" | "$schema" | "$id" | "$anchor" => true,
        _ if keyword.starts_with("x-") => true,
        "minimum" | "maximum" => is_bound_of_type(schema, keyword, value),
        // unit variants, and tags of other variants
        "enum" => {
            value.as_array().is_some_and(|list| list.iter().all(|one| one.is_string() || one.is_null()))
        }
        "const" => value.is_string(),
        // next to `properties` they come from `flatten`, which accepts what `oneOf` rejects
        "anyOf" | "oneOf" => !schema.contains_key("properties") && !schema.contains_key("type"),
        _ => false,
    }
}

/// Whether a bound is the minimum or maximum of the Rust integer type that `format` names.
fn is_bound_of_type(schema: &Map<String, Value>, keyword: &str, bound: &Value) -> bool {
    let Some(format) = schema.get("format").and_then(Value::as_str) else { return false };
    let (min, max) = match format {
        "int8" => (json!(i8::MIN), json!(i8::MAX)),
        "int16" => (json!(i16::MIN), json!(i16::MAX)),
        "uint8" => (json!(0), json!(u8::MAX)),
        "uint16" => (json!(0), json!(u16::MAX)),
        "uint32" | "uint64" | "uint128" | "uint" => (json!(0), Value::Null),
        _ => return false,
    };
    *bound == if keyword == "minimum" { min } else { max }
}

/// Lets nodes accept what decoding would refuse; returns whether there is something else that the root refuses.
pub(super) fn accept_enforced(nodes: &mut [SchemaNode]) -> bool {
    let needs = |inner: &[bool], id: NodeId, is_variant: bool| {
        let own = nodes.get(id).map(|node| node.enforcement).unwrap_or_default();
        let is_own = own == Enforcement::Some || (own == Enforcement::OfVariant && !is_variant);
        is_own || inner.get(id) == Some(&true)
    };
    // whether a subschema of each node needs validation
    let mut inner = Vec::new();
    loop {
        let needs_in = |node: &SchemaNode| parts(node).iter().any(|(id, of)| needs(&inner, *id, *of));
        let next = nodes.iter().map(needs_in).collect();
        if inner == next {
            break;
        }
        inner = next;
    }
    let containers = TypeSet::ARRAY.union(TypeSet::OBJECT);
    // where a scalar needs it, decoding takes no array and no object for that
    let is_enforced = |(id, is_variant): &(NodeId, bool)| {
        let is_scalar = nodes.get(*id).is_some_and(|node| node.refuses.contains(containers));
        *is_variant && (is_scalar || !needs(&inner, *id, true))
    };
    let mut accepted: Vec<(NodeId, TypeSet)> = Vec::new();
    let mut seen = HashSet::new();
    let mut next = vec![(0, false)];
    // in alternatives, all of each tells which one a value is
    while let Some((id, is_kept)) = next.pop() {
        let Some(node) = nodes.get(id).filter(|_| seen.insert((id, is_kept))) else { continue };
        if !is_kept && !needs(&inner, id, false) {
            accepted.push((id, TypeSet::ANY));
            continue;
        }
        let parts = parts(node);
        let tells = tells_values_apart(nodes, node);
        if node.is_unconstrained() && tells && parts.iter().all(is_enforced) {
            accepted.push((id, containers));
        }
        next.extend(parts.into_iter().map(|(part, _)| (part, is_kept || tells)));
    }
    accepted.retain(|(id, _)| !seen.contains(&(*id, true)));
    let is_left = needs(&inner, 0, false);
    for (id, accepted) in accepted {
        if let Some(node) = nodes.get_mut(id) {
            node.accepts = node.accepts.union(accepted);
        }
    }
    is_left
}

/// Whether a subschema of a node tells values apart that the node all accepts.
fn tells_values_apart(nodes: &[SchemaNode], node: &SchemaNode) -> bool {
    let by_applicator = node.applicators.iter().any(|applicator| match applicator {
        Applicator::Ref(_) | Applicator::AllOf(_) => false,
        Applicator::AnyOf(of) => not_null(nodes, &of.ids).len() > 1,
        _ => true,
    });
    by_applicator || node.array.as_ref().is_some_and(|rules| rules.contains.is_some())
}

/// The subschemas of a node, and which of them are alternatives.
fn parts(node: &SchemaNode) -> Vec<(NodeId, bool)> {
    let of_applicators = node.applicators.iter().flat_map(|applicator| {
        let is_variant = applicator.alternatives().is_some();
        applicator.ids().into_iter().map(move |id| (id, is_variant))
    });
    let mut parts: Vec<_> = of_applicators.collect();
    let mut all = Vec::new();
    node.children(&mut all);
    // those of applicators are the first
    let others: Vec<_> = all.into_iter().skip(parts.len()).map(|id| (id, false)).collect();
    parts.extend(others);
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use schemars::{JsonSchema, Schema, schema_for};

    use super::super::{Validator, link_patterns};
    use super::*;

    fn needs_validation(schema: &Value) -> bool {
        link_patterns();
        Validator::compile_unenforced(schema).expect("a schema").is_some()
    }

    fn generated_needs_validation(schema: Schema) -> bool {
        needs_validation(&schema.to_value())
    }

    #[derive(JsonSchema)]
    #[schemars(rename_all = "camelCase")]
    #[allow(dead_code)]
    struct Plain {
        name: String,
        small: u8,
        wide: u64,
        ratio: f32,
        maybe: Option<i16>,
        tags: Vec<String>,
        by_name: BTreeMap<String, Kind>,
        next: Option<Box<Plain>>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Kind {
        One,
        Two(i32),
        Three { x: f64, y: Option<f64> },
    }

    #[derive(JsonSchema)]
    #[schemars(tag = "kind", content = "value")]
    #[allow(dead_code)]
    enum Tagged {
        A(i32),
        B,
    }

    #[test]
    fn deserialization_enforces_schemas_without_constraints() {
        assert!(!generated_needs_validation(schema_for!(Plain)));
        assert!(!generated_needs_validation(schema_for!(Kind)));
        assert!(!generated_needs_validation(schema_for!(Tagged)));
        assert!(!generated_needs_validation(schema_for!(Value)));
    }

    /// Whether a schema accepts a value once decoding enforces a part of it.
    fn accepts(generated: &Value, json: &Value) -> bool {
        let validator = Validator::compile_unenforced(generated).expect("a schema").expect("a rule");
        assert_eq!(validator.is_valid(json), validator.accepts(&json.to_string()));
        validator.is_valid(json)
    }

    #[test]
    fn alternatives_that_deserialization_enforces_are_told_by_their_type() {
        let amounts = |limited: Value| {
            json!({
                "properties": { "amounts": { "type": "array", "items": { "$ref": "#/$defs/Amount" } } },
                "$defs": {
                    "Amount": { "anyOf": [
                        limited,
                        { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
                        { "$ref": "#/$defs/List" },
                        { "type": "string" }
                    ] },
                    "List": { "type": "array", "items": { "type": "string" } }
                }
            })
        };
        let number = amounts(json!({ "type": "integer", "maximum": 9 }));
        for (amount, is_accepted) in
            [(json!({}), true), (json!([1]), true), (json!(9), true), (json!(10), false)]
        {
            assert_eq!(accepts(&number, &json!({ "amounts": [amount] })), is_accepted, "{amount}");
        }
        // what another alternative would refuse does not hide a rule
        let late = json!({ "anyOf": [
            { "type": "object", "properties": { "n": { "type": "integer", "maximum": 9 } }, "required": ["n"] },
            { "type": "object", "properties": { "n": { "type": "string" } }, "required": ["n"] }
        ] });
        let late = json!({ "properties": { "late": late } });
        assert!(!accepts(&late, &json!({ "late": { "n": 10 } })));
        let contains = json!({ "properties": { "list": { "contains": { "const": "a" } } } });
        assert!(
            !accepts(&contains, &json!({ "list": ["b"] })) && accepts(&contains, &json!({ "list": ["a"] }))
        );
        let not = json!({ "properties": { "text": { "not": { "const": "a" } } } });
        assert!(!accepts(&not, &json!({ "text": "a" })) && accepts(&not, &json!({ "text": "b" })));
        // an object with a rule may be what an object or an array is taken for
        for limited in [
            json!({ "type": "object", "properties": { "n": { "type": "integer", "maximum": 9 } }, "required": ["n"] }),
            json!({ "type": "array", "maxItems": 0 }),
        ] {
            assert!(!accepts(&amounts(limited), &json!({ "amounts": [{}] })));
        }
    }

    #[test]
    fn only_what_needs_it_is_validated() {
        let generated = json!({
            "type": "object",
            "properties": {
                "plain": { "type": "string" },
                "kind": { "$ref": "#/$defs/Kind" },
                "limit": { "type": "integer", "minimum": 1 },
                "tree": { "$ref": "#/$defs/Tree" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/Short" } },
            },
            "$defs": {
                "Kind": { "oneOf": [{ "const": "one" }, { "const": "two" }] },
                "Tree": { "type": "object", "properties": {
                    "next": { "$ref": "#/$defs/Tree" }, "name": { "$ref": "#/$defs/Short" }
                } },
                "Short": { "type": "string", "maxLength": 9 }
            }
        });
        for (value, is_accepted) in [
            (json!({ "plain": 1, "kind": "three" }), true),
            (json!({ "limit": 0 }), false),
            (json!({ "tree": { "next": { "name": "0123456789" } } }), false),
            (json!({ "tree": { "next": 1 } }), false),
            (json!({ "list": ["0123456789"] }), false),
        ] {
            assert_eq!(accepts(&generated, &value), is_accepted, "{value}");
        }
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Ranged {
        #[schemars(range(min = 0))]
        n: i32,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Deep {
        inner: Vec<Option<Short>>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Short {
        #[schemars(length(max = 3))]
        text: String,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Flat {
        own: i32,
        #[schemars(flatten)]
        kind: Tagged,
    }

    #[derive(JsonSchema)]
    #[schemars(extend("additionalProperties" = false))]
    #[allow(dead_code)]
    struct Closed {
        own: i32,
    }

    #[test]
    fn constraints_that_types_do_not_enforce_need_validation() {
        assert!(generated_needs_validation(schema_for!(Ranged)));
        assert!(generated_needs_validation(schema_for!(Deep)));
        assert!(generated_needs_validation(schema_for!(Flat)));
        assert!(generated_needs_validation(schema_for!(Closed)));
        assert!(generated_needs_validation(schema_for!(HashSet<i32>)));
        assert!(generated_needs_validation(schema_for!([i32; 3])));
        assert!(generated_needs_validation(schema_for!(std::num::NonZeroU32)));
        assert!(generated_needs_validation(schema_for!(std::num::NonZeroI32)));
        assert!(needs_validation(&json!({"type": "integer", "minimum": 0})));
        assert!(needs_validation(
            &json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 200})
        ));
        assert!(needs_validation(&json!({"anyOf": [{"type": "string", "pattern": "a"}, {"type": "null"}]})));
    }
}
