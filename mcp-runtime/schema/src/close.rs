//! Closes the objects of an input schema, so that a misspelt name is refused at every depth.
//!
//! An object with properties that says nothing about other members is closed. What is composed of several schemas is closed
//! once, around all of them: its parts stay open, and so do definitions, which others may be composed of. Maps stay open.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{node::TypeSet, walk};

/// Keywords that say which members an object has besides its properties.
const OTHERS: [&str; 3] = ["additionalProperties", "patternProperties", "unevaluatedProperties"];

/// Keywords that apply schemas to the same value, of which each adds members.
const PARTS: [&str; 9] =
    ["$defs", "definitions", "allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies"];

/// Keywords in whose schemas a closed object would mean something else.
const TESTS: [&str; 5] = ["not", "if", "contains", "propertyNames", "contentSchema"];

/// Closes the objects of a schema: the root also if it has no properties. Returns whether one below the root was closed.
pub fn close_objects(root: &mut Value) -> bool {
    let original = root.clone();
    let mut closer = Closer {
        root: &original,
        known: HashMap::new(),
        described_twice: HashSet::new(),
        closings: Vec::new(),
    };
    closer.visit(&original, "", false);
    let Closer { mut closings, described_twice, .. } = closer;
    closings.retain(|closing| !described_twice.contains(&closing.schema));
    let mut has_closed = false;
    for Closing { pointer, keyword, .. } in closings {
        if let Some(map) = root.pointer_mut(&pointer).and_then(Value::as_object_mut) {
            map.insert(keyword.to_owned(), false.into());
            has_closed |= !pointer.is_empty();
        }
    }
    has_closed
}

/// What a schema says of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// It accepts none.
    NoObject,
    /// It names some.
    Named,
    /// It names them all.
    Closed,
    /// It names none, or one of its alternatives does not.
    Any,
    /// Names that it does not list.
    Map,
}

/// A schema to close.
struct Closing {
    pointer: String,
    keyword: &'static str,
    schema: *const Value,
}

struct Closer<'s> {
    root: &'s Value,
    /// By reference; what refers to itself adds nothing to itself.
    known: HashMap<&'s str, Members>,
    /// The schemas of properties that several parts of an object describe: each has some of their members.
    described_twice: HashSet<*const Value>,
    closings: Vec<Closing>,
}

impl<'s> Closer<'s> {
    /// Looks at a schema, and at those in it; one that `is_part` of another is closed by that.
    fn visit(&mut self, schema: &'s Value, pointer: &str, is_part: bool) {
        let Value::Object(map) = schema else { return };
        if !is_part && !OTHERS.iter().any(|keyword| map.contains_key(*keyword)) {
            let is_composed = composes(map);
            if pointer.is_empty() || self.members(map) == Members::Named {
                let keyword = if is_composed { "unevaluatedProperties" } else { "additionalProperties" };
                self.closings.push(Closing { pointer: pointer.to_owned(), keyword, schema });
            }
            if is_composed {
                let mut described = HashMap::new();
                self.find_described(map, &mut described, &mut HashSet::new());
            }
        }
        walk::subschemas(map, |step, child| {
            let keyword = step.split('/').nth(1).unwrap_or_default();
            if !TESTS.contains(&keyword) {
                self.visit(child, &format!("{pointer}{step}"), PARTS.contains(&keyword));
            }
        });
    }

    fn members(&mut self, map: &'s Map<String, Value>) -> Members {
        let takes_objects =
            |types: &Value| TypeSet::parse(types).is_none_or(|types| types.contains(TypeSet::OBJECT));
        if map.contains_key("enum") || map.contains_key("const") || !map.get("type").is_none_or(takes_objects)
        {
            return Members::NoObject;
        }
        let has =
            |keyword: &str| map.get(keyword).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        let own = if has("patternProperties") {
            Members::Map
        } else if map.get("additionalProperties") == Some(&Value::Bool(false)) {
            Members::Closed
        } else if has("properties") || OTHERS.iter().any(|keyword| map.contains_key(*keyword)) {
            Members::Named
        } else {
            Members::Any
        };
        let mut all = vec![own];
        all.extend(
            map.get("$ref").and_then(Value::as_str).map(|reference| self.members_of_target(reference)),
        );
        for schema in walk::array(map, "allOf") {
            all.push(self.members_of(schema));
        }
        for keyword in ["then", "else"] {
            all.extend(map.get(keyword).map(|schema| self.members_of(schema)));
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut each: Vec<_> =
                walk::array(map, keyword).iter().map(|schema| self.members_of(schema)).collect();
            let is_absent = each.is_empty();
            each.retain(|members| *members != Members::NoObject);
            let order = [Members::Any, Members::Map, Members::Named, Members::Closed];
            let members = order.into_iter().find(|members| each.contains(members));
            all.extend(members.or((!is_absent).then_some(Members::NoObject)));
        }
        let order = [Members::NoObject, Members::Map, Members::Named, Members::Closed];
        order.into_iter().find(|members| all.contains(members)).unwrap_or(Members::Any)
    }

    fn members_of(&mut self, schema: &'s Value) -> Members {
        match schema {
            Value::Object(map) => self.members(map),
            Value::Bool(false) => Members::NoObject,
            _ => Members::Any,
        }
    }

    fn members_of_target(&mut self, reference: &'s str) -> Members {
        if let Some(known) = self.known.get(reference) {
            return *known;
        }
        self.known.insert(reference, Members::Any);
        let target = walk::resolve(self.root, reference).map(|(_, schema)| schema);
        let members = target.map_or(Members::Any, |schema| self.members_of(schema));
        self.known.insert(reference, members);
        members
    }

    /// Finds the properties of one object that several of its parts describe.
    fn find_described(
        &mut self,
        map: &'s Map<String, Value>,
        described: &mut HashMap<&'s str, &'s Value>,
        followed: &mut HashSet<&'s str>,
    ) {
        for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(other) = described.insert(name, schema) {
                self.described_twice.extend([std::ptr::from_ref(other), std::ptr::from_ref(schema)]);
            }
        }
        let target = map.get("$ref").and_then(Value::as_str).filter(|reference| followed.insert(reference));
        let target =
            target.and_then(|reference| walk::resolve(self.root, reference)).map(|(_, schema)| schema);
        let parts = walk::array(map, "allOf").iter().chain(target);
        for part in parts.chain(["then", "else"].iter().filter_map(|keyword| map.get(*keyword))) {
            if let Value::Object(part) = part {
                self.find_described(part, described, followed);
            }
        }
        for branch in ["anyOf", "oneOf"].iter().flat_map(|keyword| walk::array(map, keyword)) {
            // other branches apply instead
            if let Value::Object(branch) = branch {
                self.find_described(branch, &mut described.clone(), &mut followed.clone());
            }
        }
    }
}

/// Whether a schema applies others to its value.
fn composes(map: &Map<String, Value>) -> bool {
    let keywords = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"];
    keywords.iter().any(|keyword| map.contains_key(*keyword))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Validator, *};

    fn object(properties: &Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    /// Of a schema of a member: what is accepted once it is closed.
    fn closed(member: &Value, definitions: &Value, accepted: &[Value], refused: &[Value]) -> Value {
        let mut root = json!({ "type": "object", "properties": { "m": member }, "$defs": definitions });
        let open = Validator::compile(&root).unwrap_or_else(|error| panic!("{error}"));
        close_objects(&mut root);
        assert_eq!(root["additionalProperties"], false);
        let validator = Validator::compile(&root).unwrap_or_else(|error| panic!("{error}"));
        for value in accepted {
            assert!(validator.is_valid(&json!({ "m": value })), "{value} by {root}");
        }
        for value in refused {
            let value = json!({ "m": value });
            assert!(open.is_valid(&value) && !validator.is_valid(&value), "{value} by {root}");
        }
        root["properties"]["m"].clone()
    }

    #[test]
    fn objects_with_properties_are_closed_at_every_depth() {
        let point = object(&json!({ "x": { "type": "integer" } }));
        let shut = json!({ "type": "object", "properties": { "x": { "type": "integer" } }, "additionalProperties": false });
        let lists = json!({ "type": "array", "items": point, "prefixItems": [point] });
        let closed_lists = closed(
            &lists,
            &json!({}),
            &[json!([{ "x": 1 }, {}])],
            &[json!([{ "y": 1 }]), json!([{}, { "y": 1 }])],
        );
        assert_eq!(closed_lists["items"], shut);
        let map = json!({ "type": "object", "additionalProperties": point });
        assert_eq!(
            closed(&map, &json!({}), &[json!({ "k": {} })], &[json!({ "k": { "y": 1 } })])["additionalProperties"],
            shut
        );
        for kept in [
            json!({ "type": "object" }),
            json!({}),
            json!({ "type": "object", "properties": { "a": true }, "additionalProperties": true }),
            json!({ "properties": { "a": true }, "patternProperties": { "^x-": true } }),
            json!({ "not": point }),
            json!({ "type": "array", "contains": point }),
            json!({ "anyOf": [point, { "type": "object" }] }),
            json!({ "oneOf": [{ "const": "off" }, { "properties": { "a": {} }, "additionalProperties": false }] }),
            json!({ "anyOf": [{ "patternProperties": { "^x-": true } }, { "type": "string" }] }),
        ] {
            assert_eq!(closed(&kept, &json!({}), &[], &[]), kept);
        }
        let mut root = json!({ "type": "object" });
        assert!(!close_objects(&mut root));
        assert_eq!(root["additionalProperties"], false);
    }

    #[test]
    fn a_composition_is_closed_around_its_parts() {
        let a = object(&json!({ "a": { "type": "integer" } }));
        let b = object(&json!({ "b": { "type": "integer" }, "part": object(&json!({ "x": {} })) }));
        let either = closed(
            &json!({ "anyOf": [a, b, { "type": "null" }] }),
            &json!({}),
            &[json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), json!(null), json!({ "part": { "x": 1 } })],
            &[json!({ "a": 1, "c": 2 }), json!({ "part": { "y": 1 } })],
        );
        assert_eq!(either["unevaluatedProperties"], false);
        assert_eq!(either["anyOf"][0], a);
        let tree = json!({ "Tree": object(&json!({ "next": { "$ref": "#/$defs/Tree" }, "n": {} })), "A": a });
        let of_reference = closed(
            &json!({ "$ref": "#/$defs/Tree" }),
            &tree,
            &[json!({ "next": { "next": { "n": 1 } } })],
            &[json!({ "m": 1 }), json!({ "next": { "next": { "m": 1 } } })],
        );
        assert_eq!(of_reference, json!({ "$ref": "#/$defs/Tree", "unevaluatedProperties": false }));
        let extended = json!({ "allOf": [{ "$ref": "#/$defs/Tree" }, { "$ref": "#/$defs/A" }] });
        closed(&extended, &tree, &[json!({ "n": 1, "a": 1 })], &[json!({ "n": 1, "b": 1 })]);
        // a map beside it evaluates every member
        let flat = json!({ "properties": { "id": {} }, "allOf": [{ "type": "object", "additionalProperties": { "type": "integer" } }] });
        closed(&flat, &json!({}), &[json!({ "id": 1, "any": 2 })], &[]);
        let variants = json!({ "type": "object", "properties": { "id": {} }, "oneOf": [
            { "properties": { "kind": { "const": "a" }, "of": a }, "required": ["kind"] },
            { "properties": { "kind": { "const": "b" }, "of": b }, "required": ["kind"] }
        ] });
        closed(
            &variants,
            &json!({}),
            &[json!({ "kind": "a", "id": 1, "of": { "a": 1 } }), json!({ "kind": "b", "of": { "b": 1 } })],
            &[json!({ "kind": "a", "idd": 1 }), json!({ "kind": "b", "of": { "a": 1 } })],
        );
    }

    #[test]
    fn a_property_that_two_parts_describe_stays_open() {
        let base = json!({ "Base": object(&json!({ "at": object(&json!({ "x": {} })), "deep": object(&json!({ "z": {} })) })) });
        let refined = json!({ "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "at": { "properties": { "y": {} } } } }] });
        closed(
            &refined,
            &base,
            &[json!({ "at": { "x": 1, "y": 2 }, "deep": { "z": 1 } })],
            &[json!({ "att": {} }), json!({ "deep": { "y": 1 } })],
        );
    }
}
