//! Bounds what it costs to decode types that contain alternatives inside of alternatives.
//!
//! serde reads a value that has alternatives into a buffer, and an untagged enum copies the part of the buffer that its
//! variants are tried on. Where such enums contain each other, a value inside of 60 lists is copied 60 times, and twice as
//! often with each level if two variants differ only after the member that contains the next level. Nothing interrupts
//! that, so it is counted before: which values are read how often, as the schema of the type tells it.

use std::{collections::HashMap, ops::Range};

use serde_json::{Number, Value};

use super::{
    check::AddressHasher,
    compile::{UnsupportedKeyword, compile},
    equality,
    node::{Applicator, NodeId, ObjectRules, SchemaNode, TypeSet},
    tokens::{Token, Tokens, decode_key},
};

/// `serde_json` reads no deeper value.
const MAX_DEPTH: usize = 128;

/// Each of so many bytes of a text allows two more values.
const MAX_COUNTED_BYTES: usize = 1 << 20;

/// The alternatives of a type, if decoding one of its values may cost more than a few times the value.
#[derive(Debug)]
pub(crate) struct Attempts {
    nodes: Vec<SchemaNode>,
    kinds: Vec<Kind>,
    /// Of each node, whether it is one of objects that contain their like. If one of its fields is flattened, which its
    /// schema does not tell, it is copied in a buffer that is not moved.
    recursive: Vec<bool>,
    /// The most alternatives of one type that are arrays, or objects.
    branches: usize,
}

/// How a node is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In place, as far as the node alone decides.
    Plain,
    /// A field tells the variant: the value is read into a buffer, which is moved.
    Tagged,
    /// Fields beside the alternatives of a flattened field, or beside a map of all others.
    Flattened,
    /// Each variant is tried on a copy.
    Untagged,
}

impl Attempts {
    /// The alternatives of a type; `None` if there are none inside of others.
    ///
    /// # Errors
    /// The schema cannot be compiled.
    pub(crate) fn compile(schema: &Value) -> Result<Option<Self>, UnsupportedKeyword> {
        let nodes = compile(schema)?;
        let kinds = nodes.iter().map(|node| kind(&nodes, node)).collect();
        let branches = nodes.iter().map(|node| most_branches(&nodes, node)).max().unwrap_or(1);
        let mut attempts = Self { nodes, kinds, recursive: Vec::new(), branches };
        let copies = |id: &NodeId| matches!(attempts.kind(*id), Kind::Untagged | Kind::Flattened);
        let all = 0..attempts.nodes.len();
        if !all.clone().any(|id| copies(&id)) {
            return Ok(None);
        }
        let is_recursive = |id: NodeId| {
            let has_fields = attempts.nodes.get(id).is_some_and(|node| node.object.is_some());
            has_fields && attempts.leads_to(id, |to| to == id)
        };
        let recursive: Vec<bool> = all.clone().map(is_recursive).collect();
        let is_copied = |id: NodeId| attempts.kind(id) != Kind::Plain || recursive.get(id) == Some(&true);
        let is_nested = all.filter(copies).any(|id| attempts.leads_to(id, is_copied));
        attempts.recursive = recursive;
        Ok(is_nested.then_some(attempts))
    }

    fn kind(&self, id: NodeId) -> Kind {
        self.kinds.get(id).copied().unwrap_or(Kind::Plain)
    }

    /// Whether a value of this node, or one in it, may be of such a node.
    fn leads_to(&self, id: NodeId, is_sought: impl Fn(NodeId) -> bool) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut next = Vec::new();
        children(self.nodes.get(id), &mut next);
        while let Some(id) = next.pop() {
            if let Some(seen) = seen.get_mut(id).filter(|seen| !**seen) {
                *seen = true;
                if is_sought(id) {
                    return true;
                }
                children(self.nodes.get(id), &mut next);
            }
        }
        false
    }

    /// Whether more values than this, and two for each byte, are read to decode a text, each as often as it is read.
    pub(crate) fn exceed(&self, json: &str, most: usize) -> bool {
        self.exceed_at(0, json, most)
    }

    /// As [`exceed`](Self::exceed), for a value of this property.
    pub(crate) fn exceed_in(&self, property: &str, json: &str, most: usize) -> bool {
        let root = self.nodes.first().and_then(|node| node.object.as_deref());
        let property = root.and_then(|rules| rules.property(property));
        property.is_some_and(|(_, property)| self.exceed_at(property.schema, json, most))
    }

    fn exceed_at(&self, id: NodeId, json: &str, most: usize) -> bool {
        let most = most.saturating_add(2 * json.len().min(MAX_COUNTED_BYTES));
        let opening = memchr::memchr2_iter(b'[', b'{', json.as_bytes()).count();
        let values = opening + memchr::memchr_iter(b',', json.as_bytes()).count() + 1;
        let times = match self.branches {
            0 | 1 => opening,
            many => {
                u32::try_from(opening).ok().and_then(|levels| many.checked_pow(levels)).unwrap_or(usize::MAX)
            }
        };
        if values.saturating_mul(times.saturating_add(2)) <= most {
            return false;
        }
        self.times(id, json, most).is_none()
    }

    /// How often values are read to decode a text; `None` if that is more than a limit.
    fn times(&self, id: NodeId, json: &str, most: usize) -> Option<usize> {
        let values = value_tree(json);
        let mut count =
            Count { attempts: self, json, values: &values, most, steps: 0, known: HashMap::default() };
        let times = count.read(id, 0, false, 0).times;
        (times <= most && count.steps <= most.saturating_mul(4)).then_some(times)
    }
}

/// The nodes that a node applies to its value, and to what is in that.
fn children(node: Option<&SchemaNode>, all: &mut Vec<NodeId>) {
    let Some(node) = node else { return };
    for applicator in &node.applicators {
        match applicator {
            Applicator::Ref(id) | Applicator::Not(id) | Applicator::DependentSchema(_, id) => all.push(*id),
            Applicator::AllOf(ids) | Applicator::AnyOf(ids) | Applicator::OneOf(ids) => all.extend(ids),
            Applicator::If { test, then, otherwise } => {
                all.push(*test);
                all.extend(then);
                all.extend(otherwise);
            }
        }
    }
    if let Some(rules) = &node.array {
        all.extend(&rules.prefix_items);
        all.extend(rules.items);
    }
    if let Some(rules) = &node.object {
        all.extend(rules.properties.iter().map(|property| property.schema));
        all.extend(rules.pattern_properties.iter().map(|(_, id)| *id));
        all.extend(rules.additional_properties);
    }
}

/// The node that a node refers to, if it consists of a reference.
fn target(nodes: &[SchemaNode], id: NodeId) -> Option<&SchemaNode> {
    let mut node = nodes.get(id)?;
    // this terminates: compilation rejects reference cycles
    while let ([Applicator::Ref(next)], true) = (node.applicators.as_slice(), node.is_unconstrained()) {
        node = nodes.get(*next)?;
    }
    Some(node)
}

/// The alternatives of a node, without `null`; empty if there is only one.
fn alternatives(nodes: &[SchemaNode], node: &SchemaNode) -> Vec<NodeId> {
    let mut all = Vec::new();
    for applicator in &node.applicators {
        if let Applicator::AnyOf(ids) | Applicator::OneOf(ids) = applicator {
            let others = ids.iter().filter(|id| !target(nodes, **id).is_some_and(SchemaNode::is_null));
            let others: Vec<NodeId> = others.copied().collect();
            if others.len() > 1 {
                all.extend(others);
            }
        }
    }
    all
}

fn object_rules(nodes: &[SchemaNode], id: NodeId) -> Option<&ObjectRules> {
    target(nodes, id)?.object.as_deref()
}

fn is_never(nodes: &[SchemaNode], id: NodeId) -> bool {
    nodes.get(id).is_some_and(|node| node.never)
}

/// Whether a property with one of some names tells the variant.
fn is_tag(nodes: &[SchemaNode], rules: &ObjectRules, name: &str) -> bool {
    let property = rules.property(name).map(|(_, property)| property).filter(|property| property.required);
    property.is_some_and(|property| target(nodes, property.schema).is_some_and(|node| node.choices.is_some()))
}

fn kind(nodes: &[SchemaNode], node: &SchemaNode) -> Kind {
    let has_fields = node.object.as_ref().is_some_and(|rules| !rules.properties.is_empty());
    let other = node.object.as_ref().and_then(|rules| rules.additional_properties);
    let has_others = other.is_some_and(|id| nodes.get(id).is_some_and(|node| !node.never && !node.is_any()));
    let alternatives = alternatives(nodes, node);
    if has_fields && (has_others || !alternatives.is_empty()) {
        return Kind::Flattened;
    }
    if alternatives.is_empty() {
        return Kind::Plain;
    }
    // the name of the variant is the text, or the only key
    let is_named = |id: &NodeId| {
        let by_key = object_rules(nodes, *id).is_some_and(|rules| {
            matches!(rules.properties.as_slice(), [property] if property.required)
                && rules.additional_properties.is_some_and(|id| is_never(nodes, id))
        });
        by_key || target(nodes, *id).is_some_and(|node| node.choices.is_some())
    };
    if alternatives.iter().all(is_named) {
        return Kind::Plain;
    }
    let first = alternatives.first().and_then(|id| object_rules(nodes, *id));
    let mut names =
        first.into_iter().flat_map(|rules| &rules.properties).map(|property| property.name.as_str());
    let tells = |name: &str| {
        alternatives.iter().all(|id| object_rules(nodes, *id).is_some_and(|rules| is_tag(nodes, rules, name)))
    };
    if names.any(tells) { Kind::Tagged } else { Kind::Untagged }
}

/// How many alternatives of a node accept an array, or an object, whichever are more.
fn most_branches(nodes: &[SchemaNode], node: &SchemaNode) -> usize {
    let alternatives = alternatives(nodes, node);
    let accepting = |types: TypeSet| {
        let accepts = |id: &&NodeId| {
            let Some(node) = target(nodes, **id) else { return true };
            let nested = self::alternatives(nodes, node);
            node.types.is_none_or(|allowed| allowed.contains(types)) || !nested.is_empty()
        };
        alternatives.iter().filter(accepts).count()
    };
    accepting(TypeSet::ARRAY).max(accepting(TypeSet::OBJECT))
}

/// A value in a text.
struct TextValue {
    /// The text of a scalar; that of an array or an object is not needed.
    scalar: Option<Range<usize>>,
    is_object: bool,
    key: Option<(Range<usize>, bool)>,
    /// How many values it consists of, itself included. The next ones in the list are those in it.
    size: usize,
}

/// The values in a text, each before those in it.
fn value_tree(json: &str) -> Vec<TextValue> {
    let mut values: Vec<TextValue> = Vec::new();
    let mut open = Vec::new();
    let mut key = None;
    for token in Tokens::new(json) {
        match token {
            Token::Key { range, is_escaped } => key = Some((range, is_escaped)),
            Token::Comma => {}
            Token::Scalar(range) => {
                values.push(TextValue { scalar: Some(range), is_object: false, key: key.take(), size: 1 });
            }
            Token::Open { is_object, .. } => {
                open.push(values.len());
                values.push(TextValue { scalar: None, is_object, key: key.take(), size: 1 });
            }
            Token::Close { .. } => {
                let end = values.len();
                if let Some((at, value)) = open.pop().and_then(|at| Some((at, values.get_mut(at)?))) {
                    value.size = end - at;
                }
            }
        }
    }
    values
}

/// Whether a type accepts a value, as far as its schema tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Acceptance {
    Refused,
    /// The type may refuse it, so that further alternatives are tried.
    Unknown,
    Accepted,
}

/// What it takes to decode a value.
#[derive(Debug, Clone, Copy)]
struct Reading {
    acceptance: Acceptance,
    /// How often values are read.
    times: usize,
}

impl Reading {
    const REFUSED: Self = Self { acceptance: Acceptance::Refused, times: 1 };

    fn add(&mut self, other: Self) {
        self.times = self.times.saturating_add(other.times);
        self.acceptance = self.acceptance.min(other.acceptance);
    }
}

/// The count of one text.
struct Count<'a> {
    attempts: &'a Attempts,
    json: &'a str,
    values: &'a [TextValue],
    most: usize,
    /// The work of counting itself.
    steps: usize,
    /// What alternatives take, by node, value, and whether the value is in a buffer that is not moved.
    known: HashMap<(NodeId, usize, bool), Reading, AddressHasher>,
}

impl<'a> Count<'a> {
    /// Reads the value at `at` as a node says; `is_lent` if it is in a buffer that the next enum copies.
    fn read(&mut self, id: NodeId, at: usize, is_lent: bool, depth: usize) -> Reading {
        let (attempts, values) = (self.attempts, self.values);
        let (Some(node), Some(value)) = (attempts.nodes.get(id), values.get(at)) else {
            return Reading { acceptance: Acceptance::Unknown, times: 1 };
        };
        self.steps += 1;
        // what is counted already is too much, whatever comes
        if self.steps > self.most.saturating_mul(4) || depth > MAX_DEPTH || node.never {
            return Reading::REFUSED;
        }
        let kind = attempts.kind(id);
        if node.is_any() {
            return Reading { acceptance: Acceptance::Accepted, times: value.size };
        }
        let is_recursive = attempts.recursive.get(id) == Some(&true);
        // most values are read a few times at most, and to remember them takes longer
        let is_many = self.steps > 8 * values.len();
        let is_remembered = is_many && (is_recursive || kind != Kind::Plain) && value.scalar.is_none();
        if is_remembered && let Some(known) = self.known.get(&(id, at, is_lent)) {
            return *known;
        }
        let mut reading = match &value.scalar {
            _ if node.is_unconstrained() => Reading { acceptance: Acceptance::Accepted, times: 0 },
            Some(range) => self.read_scalar(node, range),
            None => self.read_members(node, kind, at, is_lent, depth),
        };
        if is_recursive && is_lent {
            reading.times = reading.times.saturating_add(value.size);
        }
        if reading.acceptance > Acceptance::Refused {
            for applicator in &node.applicators {
                let applied = self.apply(applicator, kind, at, is_lent, depth);
                reading.add(applied);
                if reading.acceptance == Acceptance::Refused || reading.times > self.most {
                    break;
                }
            }
        }
        if is_remembered {
            self.known.insert((id, at, is_lent), reading);
        }
        reading
    }

    fn read_scalar(&self, node: &SchemaNode, range: &Range<usize>) -> Reading {
        let json = self.json.get(range.clone()).unwrap_or_default();
        let mut acceptance = Acceptance::Accepted;
        let types = match json.as_bytes().first() {
            Some(b'"') => TypeSet::STRING,
            Some(b't' | b'f') => TypeSet::BOOLEAN,
            Some(b'n') => TypeSet::NULL,
            _ => {
                // every integer type has these; `1.0` is an integer to a schema, and not to a type
                let is_small = json.parse::<i64>().is_ok_and(|number| (-128..128).contains(&number));
                if !is_small && node.types.is_none_or(|types| !types.contains(TypeSet::NUMBER)) {
                    acceptance = Acceptance::Unknown;
                }
                if json.contains(['.', 'e', 'E']) { TypeSet::NUMBER } else { TypeSet::INTEGER }
            }
        };
        let is_allowed = |allowed: TypeSet| {
            allowed.contains(types) || (types == TypeSet::NUMBER && allowed.contains(TypeSet::INTEGER))
        };
        if node.types.is_some_and(|allowed| !is_allowed(allowed)) {
            return Reading::REFUSED;
        }
        if let Some(choices) = &node.choices {
            let value = serde_json::from_str::<Value>(json).unwrap_or_default();
            if !choices.values.iter().any(|choice| equality::equal(choice, &value)) {
                return Reading::REFUSED;
            }
        }
        let breaks_rule =
            |number: &Number| node.number.as_ref().is_some_and(|rules| rules.mismatch(number).is_some());
        let is_out_of_bounds = node.number.is_some() && json.parse().is_ok_and(|number| breaks_rule(&number));
        // a type that parses its text has a format, a pattern or bounds
        let is_parsed = types == TypeSet::STRING && (node.string.is_some() || node.has_format);
        if is_out_of_bounds || is_parsed {
            acceptance = Acceptance::Unknown;
        }
        Reading { acceptance, times: 1 }
    }

    fn read_members(
        &mut self,
        node: &SchemaNode,
        kind: Kind,
        at: usize,
        is_lent: bool,
        depth: usize,
    ) -> Reading {
        let values = self.values;
        let Some(value) = values.get(at) else { return Reading::REFUSED };
        let own = if value.is_object { TypeSet::OBJECT } else { TypeSet::ARRAY };
        if node.types.is_some_and(|types| !types.contains(own)) {
            return Reading::REFUSED;
        }
        let mut reading = Reading { acceptance: Acceptance::Accepted, times: 1 };
        let mut present = vec![false; node.object.as_ref().map_or(0, |rules| rules.properties.len())];
        let (mut member, mut index) = (at + 1, 0);
        while let Some(child) = values.get(member).filter(|_| member < at + value.size) {
            let mut is_child_lent = is_lent;
            let schema = if value.is_object {
                let key =
                    child.key.as_ref().map(|(range, is_escaped)| decode_key(self.json, range, *is_escaped));
                node.object.as_deref().and_then(|rules| match rules.property(&key.unwrap_or_default()) {
                    Some((position, property)) => {
                        if let Some(present) = present.get_mut(position)
                            && std::mem::replace(present, true)
                        {
                            reading.acceptance = reading.acceptance.min(Acceptance::Unknown);
                        }
                        Some(property.schema)
                    }
                    None => {
                        if kind == Kind::Flattened {
                            reading.times = reading.times.saturating_add(child.size);
                            is_child_lent = true;
                        }
                        rules.additional_properties
                    }
                })
            } else {
                node.array.as_deref().and_then(|rules| rules.prefix_items.get(index).copied().or(rules.items))
            };
            if let Some(schema) = schema {
                let read = self.read(schema, member, is_child_lent, depth + 1);
                reading.add(read);
            }
            if reading.acceptance == Acceptance::Refused || reading.times > self.most {
                return reading;
            }
            member += child.size;
            index += 1;
        }
        let missing = node.object.iter().flat_map(|rules| rules.properties.iter().zip(&present));
        if value.is_object && missing.into_iter().any(|(property, present)| property.required && !present) {
            reading.acceptance = Acceptance::Refused;
        }
        reading
    }

    fn apply(
        &mut self,
        applicator: &Applicator,
        kind: Kind,
        at: usize,
        is_lent: bool,
        depth: usize,
    ) -> Reading {
        let unknown = Reading { acceptance: Acceptance::Unknown, times: 1 };
        match applicator {
            Applicator::Ref(id) => self.read(*id, at, is_lent, depth),
            Applicator::AllOf(ids) => {
                let mut all = Reading { acceptance: Acceptance::Accepted, times: 0 };
                for id in ids {
                    let read = self.read(*id, at, is_lent, depth);
                    all.add(read);
                }
                all
            }
            Applicator::AnyOf(ids) | Applicator::OneOf(ids) => self.try_each(ids, kind, at, is_lent, depth),
            _ => unknown,
        }
    }

    fn try_each(&mut self, ids: &[NodeId], kind: Kind, at: usize, is_lent: bool, depth: usize) -> Reading {
        // a scalar is as quickly copied as read
        let size = self.values.get(at).map_or(0, |value| value.size - 1);
        let (copied, is_lent) = match kind {
            Kind::Plain => (0, is_lent),
            Kind::Tagged if is_lent => (size, false),
            Kind::Tagged => (0, false),
            Kind::Flattened | Kind::Untagged => (size, true),
        };
        let mut all = Reading { acceptance: Acceptance::Refused, times: copied };
        for id in ids {
            let one = self.read(*id, at, is_lent, depth);
            all.times = all.times.saturating_add(one.times);
            all.acceptance = all.acceptance.max(one.acceptance);
            if all.acceptance == Acceptance::Accepted || all.times > self.most {
                break;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attempts(schema: &Value) -> Attempts {
        Attempts::compile(schema)
            .unwrap_or_else(|error| panic!("{error}"))
            .expect("alternatives in alternatives")
    }

    /// How often values are read; `usize::MAX` beyond a million.
    fn times(schema: &Value, json: &str) -> usize {
        attempts(schema).times(0, json, 1_000_000).unwrap_or(usize::MAX)
    }

    fn lists() -> Value {
        json!({ "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#" } }] })
    }

    fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    }

    #[test]
    fn a_value_is_copied_once_for_each_list_around_it() {
        let ones = vec!["1"; 1000].join(",");
        let few = times(&lists(), &nested("[", &ones, "]", 2));
        let many = times(&lists(), &nested("[", &ones, "]", 60));
        assert!((3000..8000).contains(&few), "{few}");
        assert!((60_000..80_000).contains(&many), "{many}");
    }

    #[test]
    fn variants_that_differ_late_double_with_each_level() {
        let schema = json!({ "anyOf": [
            { "type": "object", "properties": { "a": { "$ref": "#" }, "one": { "type": "integer" } }, "required": ["a", "one"] },
            { "type": "object", "properties": { "a": { "$ref": "#" }, "two": { "type": "integer" } }, "required": ["a", "two"] },
            { "type": "integer" }
        ] });
        assert!(times(&schema, &nested("{\"a\":", "1", ",\"two\":1}", 20)) == usize::MAX);
        assert!(attempts(&schema).exceed(&nested("{\"a\":", "1", "}", 120), 1 << 30));
        // the first variant is right
        assert!(times(&schema, &nested("{\"a\":", "1", ",\"one\":1}", 20)) < 2000);
        // unless the type may refuse what the schema accepts
        assert!(times(&schema, &nested("{\"a\":", "1", ",\"one\":1.0,\"two\":1}", 20)) == usize::MAX);
        assert!(times(&schema, &nested("{\"a\":", "1", ",\"one\":1,\"one\":1,\"two\":1}", 20)) == usize::MAX);
    }

    #[test]
    fn what_tells_its_variant_is_read_once() {
        let tagged = |rest: &Value| {
            json!({ "oneOf": [
                { "type": "object", "properties": { "kind": { "const": "node" }, "of": { "type": "array", "items": { "$ref": "#" } } }, "required": ["kind", "of"] },
                { "type": "object", "properties": { "kind": { "const": "leaf" }, "of": rest }, "required": ["kind"] }
            ] })
        };
        assert!(Attempts::compile(&tagged(&json!(true))).is_ok_and(|attempts| attempts.is_none()));
        let filter = json!({ "anyOf": [
            { "type": "object", "properties": { "and": { "type": "array", "items": { "$ref": "#" } } }, "required": ["and"] },
            { "type": "object", "properties": { "or": { "type": "array", "items": { "$ref": "#" } } }, "required": ["or"] },
            { "type": "object", "properties": { "field": { "type": "string" }, "value": true }, "required": ["field", "value"] }
        ] });
        let text = nested("{\"or\":[", r#"{"field":"a","value":1}"#, "]}", 10);
        assert!(times(&filter, &text) < 700, "{}", times(&filter, &text));
        let is = vec![r#"{"field":"a","value":1}"#; 1000].join(",");
        assert!(times(&filter, &format!("{{\"and\":[{is}]}}")) < 20_000);
    }

    #[test]
    fn flattened_maps_are_copied_with_each_level() {
        let schema = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "additionalProperties": { "$ref": "#" } });
        assert!((2500..20_000).contains(&times(&schema, &nested("{\"a\":", "{}", "}", 100))));
        let map = json!({ "type": "object", "additionalProperties": { "$ref": "#" } });
        assert!(Attempts::compile(&map).is_ok_and(|attempts| attempts.is_none()));
    }

    #[test]
    fn text_that_is_not_json_or_too_deep_is_counted_in_bounded_stack() {
        for text in ["", "[", "]]", "{\"a\"", &"[".repeat(100_000)] {
            attempts(&lists()).exceed(text, 0);
        }
    }
}
