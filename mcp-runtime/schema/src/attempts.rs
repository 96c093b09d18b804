//! Bounds what it costs to decode types that contain alternatives inside of alternatives.
//!
//! serde reads a value that has alternatives into a buffer, and an untagged enum copies the part of the buffer that its
//! variants are tried on. Where such enums contain each other, a value inside of 60 lists is copied 60 times, and twice as
//! often with each level if two variants differ only after the member that contains the next level. Nothing interrupts
//! that, so it is counted before: which values are read how often, as the schema of the type tells it.

use std::{collections::HashMap, ops::Range, sync::Arc};

use serde_json::{Number, Value};

use super::{
    alternatives::{not_null, tag, variant_name},
    check::AddressHasher,
    equality,
    node::{Applicator, NodeId, Property, SchemaNode, TypeSet},
    tokens::{Token, Tokens, count_opening, count_values, decode_key},
};

/// `serde_json` reads no deeper value.
const MAX_DEPTH: usize = 128;

/// The cost of reading or copying an array or an object, where a scalar costs one: memory is allocated.
const CONTAINER: usize = 4;

/// The cost of a refusal by an alternative: an error is made, with its message.
const REFUSAL: usize = 8;

/// The properties that were present are bits of one `u64`.
const MOST_PROPERTIES: usize = 64;

/// The alternatives of a type, if decoding one of its values may cost more than a few times the value.
#[derive(Debug)]
pub struct Attempts {
    nodes: Arc<[SchemaNode]>,
    kinds: Vec<Kind>,
    /// Of each node, whether it is one of objects that contain their like. If one of its fields is flattened, which its
    /// schema does not tell, it is copied in a buffer that is not moved.
    recursive: Vec<bool>,
    /// Of each node, whether a value of it, or one in that, may be copied: others are read once.
    copies: Vec<bool>,
    /// The most alternatives of one type that are arrays, or objects.
    branches: usize,
    /// The most alternatives of one type.
    alternatives: usize,
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
    /// The alternatives of a compiled schema; `None` unless one contains others.
    pub(super) fn of(nodes: Arc<[SchemaNode]>) -> Option<Self> {
        let kinds = nodes.iter().map(|node| kind(&nodes, node)).collect();
        let branches = nodes.iter().map(|node| most_branches(&nodes, node)).max().unwrap_or(1);
        let alternatives = nodes.iter().map(|node| alternatives(&nodes, node).len()).max().unwrap_or(0);
        let (recursive, copies) = (Vec::new(), Vec::new());
        let mut attempts = Self { nodes, kinds, recursive, copies, branches, alternatives };
        let copies = |id: &NodeId| matches!(attempts.kind(*id), Kind::Untagged | Kind::Flattened);
        let all = 0..attempts.nodes.len();
        if !all.clone().any(|id| copies(&id)) {
            return None;
        }
        let is_recursive = |id: NodeId| {
            let has_fields = attempts.nodes.get(id).is_some_and(|node| node.object.is_some());
            has_fields && attempts.leads_to(id, |to| to == id)
        };
        let recursive: Vec<bool> = all.clone().map(is_recursive).collect();
        let is_copied = |id: NodeId| attempts.kind(id) != Kind::Plain || recursive.get(id) == Some(&true);
        let is_nested = all.clone().filter(copies).any(|id| attempts.leads_to(id, is_copied));
        let all_copies: Vec<bool> =
            all.map(|id| copies(&id) || attempts.leads_to(id, |to| copies(&to))).collect();
        (attempts.recursive, attempts.copies) = (recursive, all_copies);
        is_nested.then_some(attempts)
    }

    fn kind(&self, id: NodeId) -> Kind {
        self.kinds.get(id).copied().unwrap_or(Kind::Plain)
    }

    /// Whether a value of this node, or one in it, may be of such a node.
    fn leads_to(&self, id: NodeId, is_sought: impl Fn(NodeId) -> bool) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut next = Vec::new();
        self.nodes.get(id).into_iter().for_each(|node| node.children(&mut next));
        while let Some(id) = next.pop() {
            if let Some(seen) = seen.get_mut(id).filter(|seen| !**seen) {
                *seen = true;
                if is_sought(id) {
                    return true;
                }
                self.nodes.get(id).into_iter().for_each(|node| node.children(&mut next));
            }
        }
        false
    }

    /// Whether it takes more steps than this, and one for each byte, to decode a text. A step is to read or copy a scalar;
    /// a value that is read several times takes them each time.
    ///
    /// The text is an object whose members are decoded one by one: a refusal by one does not end the others.
    pub fn exceed(&self, json: &str, most: usize) -> bool {
        self.exceed_at(0, json, most, true)
    }

    /// As [`exceed`](Self::exceed), for a value of this property.
    pub fn exceed_in(&self, property: &str, json: &str, most: usize) -> bool {
        let root = self.nodes.first().and_then(|node| node.object.as_deref());
        let property = root.and_then(|rules| rules.property(property));
        property.is_some_and(|(_, property)| {
            self.copies.get(property.schema) != Some(&false)
                && self.exceed_at(property.schema, json, most, false)
        })
    }

    fn exceed_at(&self, id: NodeId, json: &str, most: usize, is_all: bool) -> bool {
        let most = most.saturating_add(json.len());
        let (opening, values) = (count_opening(json), count_values(json));
        let times = match self.branches {
            0 | 1 => opening,
            many => {
                u32::try_from(opening).ok().and_then(|levels| many.checked_pow(levels)).unwrap_or(usize::MAX)
            }
        };
        let each = CONTAINER + REFUSAL * self.alternatives;
        let at_most = values.saturating_mul(times.saturating_add(2)).saturating_mul(each);
        at_most > most && self.times(id, json, most, is_all).is_none()
    }

    /// The steps that it takes to decode a text; `None` if they are more than a limit.
    fn times(&self, id: NodeId, json: &str, most: usize, is_all: bool) -> Option<usize> {
        let values = value_tree(json)?;
        let mut count = Count {
            attempts: self,
            json,
            values: &values,
            most,
            is_all,
            steps: 0,
            known: HashMap::default(),
            scalars: vec![(0, Reading::REFUSED); 256],
        };
        let times = count.read(id, 0, false, 0).times;
        (times <= most && count.steps <= most.saturating_mul(4)).then_some(times)
    }
}

/// The alternatives of a node, without `null`; empty if there is only one.
fn alternatives(nodes: &[SchemaNode], node: &SchemaNode) -> Vec<NodeId> {
    let mut all = Vec::new();
    for applicator in &node.applicators {
        if let Some(of) = applicator.alternatives() {
            let others = not_null(nodes, &of.ids);
            if others.len() > 1 {
                all.extend(others);
            }
        }
    }
    all
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
        variant_name(nodes, *id).is_some() || nodes.get(*id).is_some_and(|node| node.choices.is_some())
    };
    if alternatives.iter().all(is_named) {
        return Kind::Plain;
    }
    if tag(nodes, &alternatives).is_some() { Kind::Tagged } else { Kind::Untagged }
}

/// How many alternatives of a node accept an array, or an object, whichever are more.
fn most_branches(nodes: &[SchemaNode], node: &SchemaNode) -> usize {
    let alternatives = alternatives(nodes, node);
    let accepting = |types: TypeSet| {
        let accepts = |id: &&NodeId| {
            let Some(node) = nodes.get(**id) else { return true };
            let nested = self::alternatives(nodes, node);
            node.types.is_none_or(|allowed| allowed.contains(types)) || !nested.is_empty()
        };
        alternatives.iter().filter(accepts).count()
    };
    accepting(TypeSet::ARRAY).max(accepting(TypeSet::OBJECT))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Scalar,
    Array,
    Object,
}

/// A value in a text. There may be a hundred thousand, so they are small.
struct TextValue {
    kind: ValueKind,
    is_key_escaped: bool,
    /// The text of a scalar; that of an array or an object is not needed.
    scalar: Range<u32>,
    /// The key with its quotes; empty if there is none.
    key: Range<u32>,
    /// How many values it consists of, itself included. The next ones in the list are those in it.
    size: u32,
    /// The steps that it takes to copy it.
    weight: u32,
}

impl TextValue {
    fn size(&self) -> usize {
        self.size as usize
    }

    fn weight(&self) -> usize {
        self.weight as usize
    }
}

fn widen(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// The values in a text, each before those in it; `None` if the text is longer than any that is read.
fn value_tree(json: &str) -> Option<Vec<TextValue>> {
    // a value takes at most as many steps to copy as it has bytes, times these
    if json.len() > u32::MAX as usize / CONTAINER {
        return None;
    }
    let narrow = |range: Range<usize>| range.start as u32..range.end as u32;
    let mut values: Vec<TextValue> = Vec::new();
    let mut open: Vec<(usize, u32)> = Vec::new();
    let (mut key, mut is_key_escaped) = (0..0, false);
    // of all values so far
    let mut sum: u32 = 0;
    for token in Tokens::new(json) {
        let (kind, scalar) = match token {
            Token::Comma => continue,
            Token::Key { range, is_escaped } => {
                (key, is_key_escaped) = (narrow(range), is_escaped);
                continue;
            }
            Token::Close { .. } => {
                let end = values.len();
                if let Some((at, before)) = open.pop()
                    && let Some(value) = values.get_mut(at)
                {
                    (value.size, value.weight) = ((end - at) as u32, sum - before);
                }
                continue;
            }
            Token::Open { is_object, .. } => {
                open.push((values.len(), sum));
                sum += CONTAINER as u32;
                (if is_object { ValueKind::Object } else { ValueKind::Array }, 0..0)
            }
            Token::Scalar(range) => {
                sum += 1;
                (ValueKind::Scalar, narrow(range))
            }
        };
        let key = std::mem::replace(&mut key, 0..0);
        values.push(TextValue { kind, is_key_escaped, scalar, key, size: 1, weight: 1 });
    }
    Some(values)
}

/// A scalar of a text.
struct Scalar<'a> {
    json: &'a str,
    types: TypeSet,
    /// Its value, if that is an integer which every integer type has.
    small: Option<i64>,
}

impl<'a> Scalar<'a> {
    fn new(json: &'a str) -> Self {
        let (mut types, mut small) = (TypeSet::INTEGER, None);
        match json.as_bytes().first() {
            Some(b'"') => types = TypeSet::STRING,
            Some(b't' | b'f') => types = TypeSet::BOOLEAN,
            Some(b'n') => types = TypeSet::NULL,
            _ if json.len() <= 4 => small = json.parse().ok().filter(|number| (-128..128).contains(number)),
            _ => {}
        }
        // `1.0` is an integer to a schema, and not to a type
        if types == TypeSet::INTEGER && small.is_none() && json.contains(['.', 'e', 'E']) {
            types = TypeSet::NUMBER;
        }
        Self { json, types, small }
    }
}

/// Whether a type accepts a value, as far as its schema tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Acceptance {
    Refused,
    /// The type may refuse it, so that further alternatives are tried.
    Unknown,
    Accepted,
}

/// The cost of decoding a value.
#[derive(Debug, Clone, Copy)]
struct Reading {
    acceptance: Acceptance,
    /// The steps of reading it.
    times: usize,
}

impl Reading {
    const REFUSED: Self = Self { acceptance: Acceptance::Refused, times: REFUSAL };

    fn add(&mut self, other: Self) {
        self.times = self.times.saturating_add(other.times);
        self.acceptance = self.acceptance.min(other.acceptance);
    }
}

/// Decodes a scalar by the keywords of one node.
fn decode_scalar(node: &SchemaNode, scalar: &Scalar<'_>) -> Reading {
    let Scalar { json, types, small } = *scalar;
    let is_allowed = |allowed: TypeSet| {
        allowed.contains(types) || (types == TypeSet::NUMBER && allowed.contains(TypeSet::INTEGER))
    };
    if node.never || node.types.is_some_and(|allowed| !is_allowed(allowed)) {
        return Reading::REFUSED;
    }
    if let Some(choices) = &node.choices {
        let value = serde_json::from_str::<Value>(json).unwrap_or_default();
        if !choices.values.iter().any(|choice| equality::equal(choice, &value)) {
            return Reading::REFUSED;
        }
    }
    let is_number = TypeSet::NUMBER.contains(types);
    let is_wide =
        is_number && small.is_none() && node.types.is_none_or(|types| !types.contains(TypeSet::NUMBER));
    let is_out_of_bounds = is_number
        && node.number.as_ref().is_some_and(|rules| {
            let number = small.map(Number::from).or_else(|| json.parse().ok());
            number.is_some_and(|number| rules.broken(&number).is_some())
        });
    // a type that parses its text has a format, a pattern or bounds
    let is_parsed = types == TypeSet::STRING && (node.string.is_some() || node.has_format);
    let is_unknown = is_wide || is_out_of_bounds || is_parsed;
    let acceptance = if is_unknown { Acceptance::Unknown } else { Acceptance::Accepted };
    Reading { acceptance, times: 1 }
}

/// The count of one text.
struct Count<'a> {
    attempts: &'a Attempts,
    json: &'a str,
    values: &'a [TextValue],
    most: usize,
    /// Whether the outermost value is an object whose members are decoded one by one.
    is_all: bool,
    /// The work of counting itself.
    steps: usize,
    /// The costs of alternatives, by node, value, and whether the value is in a buffer that is not moved.
    known: HashMap<(NodeId, usize, bool), Reading, AddressHasher>,
    /// Of short scalars that were read, the last ones in the slots of [`short_scalar`](Self::short_scalar).
    scalars: Vec<(u64, Reading)>,
}

impl<'a> Count<'a> {
    /// Reads the value at `at` as a node says; `is_lent` if it is in a buffer that the next enum copies.
    fn read(&mut self, id: NodeId, at: usize, is_lent: bool, depth: usize) -> Reading {
        let (attempts, values) = (self.attempts, self.values);
        let (Some(node), Some(value)) = (attempts.nodes.get(id), values.get(at)) else {
            return Reading { acceptance: Acceptance::Unknown, times: 1 };
        };
        self.steps += 1;
        // the count so far is already too high, whatever follows
        if self.steps > self.most.saturating_mul(4) || depth > MAX_DEPTH || node.never {
            return Reading::REFUSED;
        }
        let slot = (value.kind == ValueKind::Scalar).then(|| self.short_scalar(id, value)).flatten();
        if let Some((key, slot)) = slot
            && let Some((known, reading)) = self.scalars.get(slot)
            && *known == key
        {
            return *reading;
        }
        let kind = attempts.kind(id);
        if node.is_any() {
            return Reading { acceptance: Acceptance::Accepted, times: value.weight() };
        }
        let is_recursive = attempts.recursive.get(id) == Some(&true);
        // most values are read a few times at most, and to remember them takes longer
        let is_many = self.steps > 8 * values.len();
        let is_remembered = is_many && (is_recursive || kind != Kind::Plain);
        if is_remembered && let Some(known) = self.known.get(&(id, at, is_lent)) {
            return *known;
        }
        let mut reading = if node.is_unconstrained() {
            Reading { acceptance: Acceptance::Accepted, times: 0 }
        } else {
            self.read_members(node, kind, at, is_lent, depth)
        };
        if is_recursive && is_lent {
            reading.times = reading.times.saturating_add(value.weight());
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
        if let Some((key, slot)) = slot
            && let Some(slot) = self.scalars.get_mut(slot)
        {
            *slot = (key, reading);
        }
        reading
    }

    /// A node and a short scalar as one number, which is not 0, and the slot of what is known about them. Where a text has a
    /// hundred thousand scalars, most of them are short, and many are alike.
    fn short_scalar(&self, id: NodeId, value: &TextValue) -> Option<(u64, usize)> {
        let scalar = self.json.as_bytes().get(widen(&value.scalar)).filter(|scalar| scalar.len() <= 5)?;
        let mut bytes = [0; 8];
        bytes.get_mut(..scalar.len())?.copy_from_slice(scalar);
        let key = u64::from_le_bytes(bytes) << 16 | u64::from(u16::try_from(id).ok()?);
        // the highest bits of the product depend on all of the key
        (key != 0).then_some((key, (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize))
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
        let is_object = match value.kind {
            ValueKind::Scalar => {
                let json = self.json.get(widen(&value.scalar)).unwrap_or_default();
                return decode_scalar(node, &Scalar::new(json));
            }
            kind => kind == ValueKind::Object,
        };
        let own = if is_object { TypeSet::OBJECT } else { TypeSet::ARRAY };
        if node.types.is_some_and(|types| !types.contains(own)) {
            return Reading::REFUSED;
        }
        let mut reading = Reading { acceptance: Acceptance::Accepted, times: CONTAINER };
        // of more, it is not told which are missing or there twice
        let is_counted = node.object.as_ref().is_none_or(|rules| rules.properties.len() <= MOST_PROPERTIES);
        if !is_counted {
            reading.acceptance = Acceptance::Unknown;
        }
        let mut present: u64 = 0;
        let (mut member, mut index) = (at + 1, 0);
        while let Some(child) = values.get(member).filter(|_| member < at + value.size()) {
            let mut is_child_lent = is_lent;
            let schema = if is_object {
                let key = decode_key(self.json, &widen(&child.key), child.is_key_escaped);
                node.object.as_deref().and_then(|rules| match rules.property(&key) {
                    Some((position, property)) => {
                        let bit = 1 << (position % MOST_PROPERTIES);
                        if present & bit != 0 {
                            reading.acceptance = reading.acceptance.min(Acceptance::Unknown);
                        }
                        present |= bit;
                        Some(property.schema)
                    }
                    None => {
                        if kind == Kind::Flattened {
                            reading.times = reading.times.saturating_add(child.weight());
                            is_child_lent = true;
                        }
                        rules.additional_properties
                    }
                })
            } else {
                node.array.as_deref().and_then(|rules| rules.prefix_items.get(index).copied().or(rules.items))
            };
            let is_argument = self.is_all && at == 0;
            // most arguments have no such alternatives
            let counts = |id: &NodeId| !is_argument || self.attempts.copies.get(*id) != Some(&false);
            if let Some(schema) = schema.filter(counts) {
                let read = self.read(schema, member, is_child_lent, depth + 1);
                reading.add(read);
            }
            let ends = reading.acceptance == Acceptance::Refused && !is_argument;
            if ends || reading.times > self.most {
                return reading;
            }
            member += child.size();
            index += 1;
        }
        let mut properties = node.object.iter().flat_map(|rules| rules.properties.iter().enumerate());
        let is_missing = |(at, property): (usize, &Property)| property.required && present & (1 << at) == 0;
        if is_object && is_counted && properties.any(is_missing) {
            reading.add(Reading::REFUSED);
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
            Applicator::AnyOf(of) | Applicator::OneOf(of) => self.try_each(&of.ids, kind, at, is_lent, depth),
            _ => unknown,
        }
    }

    /// Tries alternatives one after the other.
    fn try_each(&mut self, ids: &[NodeId], kind: Kind, at: usize, is_lent: bool, depth: usize) -> Reading {
        let (values, steps) = (self.values, self.steps);
        // a scalar is as quickly copied as read
        let container = values.get(at).filter(|value| value.kind != ValueKind::Scalar);
        let weight = container.map_or(0, TextValue::weight);
        let (copied, is_lent) = match kind {
            Kind::Plain => (0, is_lent),
            Kind::Tagged if is_lent => (weight, false),
            Kind::Tagged => (0, false),
            Kind::Flattened | Kind::Untagged => (weight, true),
        };
        // where a tag or a name tells the variant, the others refuse nothing
        let is_told = matches!(kind, Kind::Plain | Kind::Tagged);
        let mut all = Reading { acceptance: Acceptance::Refused, times: copied };
        for id in ids {
            let one = self.read(*id, at, is_lent, depth);
            let skipped = if is_told && one.acceptance == Acceptance::Refused { REFUSAL } else { 0 };
            all.times = all.times.saturating_add(one.times.saturating_sub(skipped));
            all.acceptance = all.acceptance.max(one.acceptance);
            if all.acceptance == Acceptance::Accepted || all.times > self.most {
                break;
            }
        }
        if all.acceptance == Acceptance::Refused {
            all.times = all.times.saturating_add(REFUSAL);
        }
        if container.is_none() {
            // it is one step, whatever its alternatives
            self.steps = steps;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::compile::compile, *};

    fn compiled(schema: &Value) -> Option<Attempts> {
        Attempts::of(compile(schema).unwrap_or_else(|error| panic!("{error}")).into())
    }

    fn attempts(schema: &Value) -> Attempts {
        compiled(schema).expect("alternatives in alternatives")
    }

    /// How often values are read; `usize::MAX` beyond a million.
    fn times(schema: &Value, json: &str) -> usize {
        attempts(schema).times(0, json, 1_000_000, false).unwrap_or(usize::MAX)
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
        assert!((60_000..90_000).contains(&many), "{many}");
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
        assert!(times(&schema, &nested("{\"a\":", "1", ",\"one\":1}", 20)) < 6000);
        let optional =
            json!({ "anyOf": [{ "$ref": "#/$defs/T" }, { "type": "null" }], "$defs": { "T": schema } });
        let optional = optional.to_string().replace(r##""$ref":"#"}"##, r##""$ref":"#/$defs/T"}"##);
        let optional: Value = serde_json::from_str(&optional).expect("a schema");
        assert!(attempts(&optional).exceed(&nested("{\"a\":", "1", "}", 60), 1 << 30));
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
        assert!(compiled(&tagged(&json!(true))).is_none());
        let filter = json!({ "anyOf": [
            { "type": "object", "properties": { "and": { "type": "array", "items": { "$ref": "#" } } }, "required": ["and"] },
            { "type": "object", "properties": { "or": { "type": "array", "items": { "$ref": "#" } } }, "required": ["or"] },
            { "type": "object", "properties": { "field": { "type": "string" }, "value": true }, "required": ["field", "value"] }
        ] });
        let text = nested("{\"or\":[", r#"{"field":"a","value":1}"#, "]}", 10);
        assert!(times(&filter, &text) < 5000, "{}", times(&filter, &text));
        let is = vec![r#"{"field":"a","value":1}"#; 1000].join(",");
        assert!(times(&filter, &format!("{{\"and\":[{is}]}}")) < 80_000);
    }

    #[test]
    fn what_one_argument_refuses_does_not_end_the_count_of_others() {
        let schema = json!({
            "type": "object",
            "properties": { "slip": { "type": "integer" }, "lists": { "$ref": "#/$defs/Lists" } },
            "$defs": { "Lists": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#/$defs/Lists" } }] } }
        });
        let lists = nested("[", &vec!["1"; 1000].join(","), "]", 60);
        assert!(attempts(&schema).exceed(&format!(r#"{{"slip":"1","lists":{lists}}}"#), 10_000));
        assert!(!attempts(&schema).exceed(&format!(r#"{{"slip":"1","lists":{lists}}}"#), 100_000));
    }

    #[test]
    fn members_that_are_never_copied_are_not_counted() {
        let schema = json!({
            "type": "object",
            "properties": { "plain": { "type": "array", "items": { "$ref": "#/$defs/Plain" } }, "lists": { "$ref": "#/$defs/Lists" } },
            "$defs": {
                "Plain": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Plain" } } },
                "Lists": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#/$defs/Lists" } }] }
            }
        });
        let plain = vec![nested("{\"next\":", "{}", "}", 50); 100].join(",");
        assert!(!attempts(&schema).exceed(&format!(r#"{{"plain":[{plain}],"other":[[]]}}"#), 0));
        assert!(!attempts(&schema).exceed_in("plain", &format!("[{plain}]"), 0));
        let lists = nested("[", &vec!["1"; 1000].join(","), "]", 60);
        for json in [
            format!(r#"{{"plain":[],"lists":{lists}}}"#),
            format!(r#"{{"plain":[],"\u006cists" : {lists}}}"#),
            format!(r#"{{"lists":1,"lists":{lists}}}"#),
        ] {
            assert!(attempts(&schema).exceed(&json, 10_000), "{json}");
        }
    }

    #[test]
    fn flattened_maps_are_copied_with_each_level() {
        let schema = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "additionalProperties": { "$ref": "#" } });
        assert!((10_000..80_000).contains(&times(&schema, &nested("{\"a\":", "{}", "}", 100))));
        let map = json!({ "type": "object", "additionalProperties": { "$ref": "#" } });
        assert!(compiled(&map).is_none());
    }

    #[test]
    fn text_that_is_not_json_or_too_deep_is_counted_in_bounded_stack() {
        for text in ["", "[", "]]", "{\"a\"", &"[".repeat(100_000)] {
            attempts(&lists()).exceed(text, 0);
        }
    }
}
