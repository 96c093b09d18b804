//! Validates JSON text while it is parsed, without building a value.
//!
//! Structured results are validated on every call, and most of their schemas have no keyword that needs a value twice.
//! Where one has, the value below it is built, unless its type tells which alternative it is.

use std::{cell::RefCell, hash::Hasher};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
    value::{MapAccessDeserializer, SeqAccessDeserializer},
};
use serde_json::{Number, Value};

use super::check::{MAX_PATTERN_NAME, Validation, duplicate_mismatch, is_within, long_name_mismatch};
use super::error::{ValidationError, ValuePath};
use super::locate::locate;
use super::node::{Applicator, ArrayRules, Choices, NodeId, ObjectRules, SchemaNode, TypeSet};
use super::tokens::{value_at, value_text};
use super::value_hash::{HashOf, ItemHashes, ValueHasher};
use super::{equality, format::StringFormat};

/// The properties that were present are bits of one `u64`.
const MOST_PROPERTIES: usize = 64;

/// Whether each node can be checked while the text is parsed; for the others a value is built.
pub(super) fn streamed(nodes: &[SchemaNode]) -> Vec<bool> {
    let streams = |node: &SchemaNode| {
        let choices = node.choices.as_ref().is_none_or(|choices| {
            choices.values.iter().all(|value| !matches!(value, Value::Array(_) | Value::Object(_)))
        });
        let array = node.array.as_ref().is_none_or(|rules| rules.contains.is_none());
        let object = node.object.as_ref().is_none_or(|rules| {
            // one pattern and no properties: each key has one subschema, or is refused
            let by_name = (rules.pattern_properties.is_empty()
                || (rules.pattern_properties.len() == 1 && rules.properties.is_empty()))
                && rules.property_names.is_none()
                && rules.dependent_required.is_empty();
            // a duplicate key is one property of a value, so keys cannot be counted
            let is_counted = rules.min.is_some() || rules.max.is_some();
            by_name
                && !is_counted
                && rules.unevaluated_properties.is_none()
                && rules.required.is_empty()
                && rules.properties.len() <= MOST_PROPERTIES
        });
        choices && array && object && (node.applicators.is_empty() || forward_target(nodes, node).is_some())
    };
    nodes.iter().map(streams).collect()
}

/// The target of a node that consists of a reference, and whether it also allows `null`.
fn forward_target(nodes: &[SchemaNode], node: &SchemaNode) -> Option<(NodeId, bool)> {
    let [applied] = node.applicators.as_slice() else { return None };
    if !node.is_unconstrained() {
        return None;
    }
    match applied {
        Applicator::Ref(id) => Some((*id, false)),
        Applicator::AnyOf(ids) | Applicator::OneOf(ids) => {
            let [first, second] = ids.as_slice() else { return None };
            let is_null = |id: &NodeId| nodes.get(*id).is_some_and(SchemaNode::is_null);
            let one_of = matches!(applied, Applicator::OneOf(_));
            let (other, nullable) = match (is_null(first), is_null(second)) {
                (true, false) => (*second, true),
                (false, true) => (*first, true),
                _ => return None,
            };
            // in `oneOf` the other schema must not accept null as well, which only `type` shows without validation
            let excludes_null =
                |node: &SchemaNode| node.types.is_some_and(|types| !types.contains(TypeSet::NULL));
            (!one_of || nodes.get(other).is_some_and(excludes_null)).then_some((other, nullable))
        }
        _ => None,
    }
}

/// The rules that a text is checked against.
#[derive(Clone, Copy)]
pub(super) struct TextRules<'n> {
    pub(super) nodes: &'n [SchemaNode],
    /// As [`streamed`] returns it.
    pub(super) streamed: &'n [bool],
    pub(super) hasher: &'n ValueHasher,
    pub(super) null_is_absent: bool,
    pub(super) check_formats: bool,
}

/// Whether a text is JSON that conforms. False negatives are possible: confirm them on the value.
pub(super) fn is_valid(rules: TextRules<'_>, json: &str) -> bool {
    check_text(rules, json, None).is_ok()
}

/// A value that does not conform.
pub(super) struct Refused<'a> {
    pub(super) path: String,
    /// The text from the beginning of the value on, if it could be found.
    found: Option<(&'a str, usize)>,
    /// The node that refuses it.
    pub(super) node: NodeId,
    /// Its errors, if they are known without building a value of the text.
    pub(super) errors: Vec<ValidationError>,
}

impl<'a> Refused<'a> {
    /// Its text, if that is known, and no longer than this unless it is a scalar.
    pub(super) fn text(&self, most: usize) -> Option<&'a str> {
        let (json, start) = self.found?;
        let is_scalar = !json.get(start..)?.starts_with(['[', '{']);
        value_text(json, start, if is_scalar { usize::MAX } else { most })
    }
}

/// The first value that does not conform; `None` if the text is JSON that conforms.
pub(super) fn first_refused<'a>(rules: TextRules<'_>, json: &'a str) -> Option<Refused<'a>> {
    let first = RefCell::default();
    let error = check_text(rules, json, Some(&first)).err()?;
    let Refusal { by, mut positions } = first.into_inner();
    let Some((node, errors)) = by else {
        // something that no value can represent
        let path = locate(json, &error, &|_| None).path;
        return Some(Refused { path, found: None, node: 0, errors: Vec::new() });
    };
    positions.reverse();
    let (path, start) = value_at(json, &positions).unzip();
    Some(Refused { path: path.unwrap_or_default(), found: start.map(|start| (json, start)), node, errors })
}

/// The node that refused a value.
#[derive(Default)]
struct Refusal {
    /// The first node that did, and the errors of the value if they are known.
    by: Option<(NodeId, Vec<ValidationError>)>,
    /// The positions of the value in the arrays and objects around it, innermost first.
    positions: Vec<usize>,
}

fn check_text(
    rules: TextRules<'_>,
    json: &str,
    refusing: Option<&RefCell<Refusal>>,
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let text = CheckedText { rules, refusing };
    let check = StreamCheck { text: &text, id: 0, nullable: false, hashes: false };
    check.deserialize(&mut deserializer)?;
    deserializer.end()
}

/// The state that all checks of one text share.
struct CheckedText<'n> {
    rules: TextRules<'n>,
    /// The refusal of a value is written here, if it is asked for.
    refusing: Option<&'n RefCell<Refusal>>,
}

/// Reads a value as its hash, or as 0 if that is not needed.
#[derive(Clone, Copy)]
struct StreamCheck<'c, 'n> {
    text: &'c CheckedText<'n>,
    id: NodeId,
    nullable: bool,
    /// Whether the value is, or is part of, an item of an array whose items must differ.
    hashes: bool,
}

impl<'n> StreamCheck<'_, 'n> {
    fn at(self, id: NodeId) -> Self {
        Self { id, nullable: false, ..self }
    }

    fn hash(self, hash: impl FnOnce(&'n ValueHasher) -> u64) -> u64 {
        if self.hashes { hash(self.text.rules.hasher) } else { 0 }
    }

    /// The error of a value that the node refuses.
    #[cold]
    fn refuse<E: Error>(self) -> E {
        self.refuse_with(|_| Vec::new())
    }

    /// The error of a value that the node refuses, with its errors if they are asked for.
    #[cold]
    fn refuse_with<E: Error>(self, errors: impl FnOnce(Validation<'n>) -> Vec<ValidationError>) -> E {
        if let Some(refusing) = self.text.refusing {
            // the arrays and objects around it fail with the same error, but do not refuse it again
            refusing.borrow_mut().by.get_or_insert_with(|| (self.id, errors(self.validation())));
        }
        E::custom("does not conform")
    }

    /// Notes at which position the value is that was refused, in the array or object of this check.
    #[cold]
    fn refused_at<E>(self, position: usize, error: E) -> E {
        if let Some(mut refusing) = self.text.refusing.map(RefCell::borrow_mut)
            && refusing.by.is_some()
        {
            refusing.positions.push(position);
        }
        error
    }

    fn validation(self) -> Validation<'n> {
        let TextRules { nodes, null_is_absent, check_formats, .. } = self.text.rules;
        let mut validation = Validation::new(nodes, null_is_absent);
        validation.check_formats = check_formats;
        validation
    }

    /// Checks a value that was built.
    fn check_value<E: Error>(self, value: &Value) -> Result<u64, E> {
        let is_absent = self.nullable && value.is_null();
        if is_absent || self.validation().check(self.id, value, &ValuePath::Root, 0) {
            let hash = |hasher| HashOf(hasher).deserialize(value).unwrap_or_default();
            return Ok(self.hash(hash));
        }
        Err(self.refuse_with(|validation| validation.errors_at(self.id, value)))
    }

    fn check_scalar<E: Error>(
        self,
        node: &SchemaNode,
        types: TypeSet,
        is_choice: impl Fn(&Value) -> bool,
    ) -> Result<(), E> {
        let is_chosen = |choices: &Choices| choices.values.iter().any(&is_choice);
        let allowed = !node.never
            && node.types.is_none_or(|allowed| allowed.contains(types))
            && node.choices.as_ref().is_none_or(is_chosen);
        if allowed { Ok(()) } else { Err(self.refuse()) }
    }

    fn check_number<E: Error>(self, number: Number, hash: u64) -> Result<u64, E> {
        let node = self.node()?;
        let value = Value::Number(number);
        self.check_scalar(node, TypeSet::of(&value), |choice| equality::equal(choice, &value))?;
        let Value::Number(number) = &value else { return Ok(hash) };
        if node.number.as_ref().is_some_and(|rules| !rules.accept(number)) {
            Err(self.refuse())
        } else {
            Ok(hash)
        }
    }

    fn node<E: Error>(self) -> Result<&'n SchemaNode, E> {
        self.text.rules.nodes.get(self.id).ok_or_else(|| self.refuse())
    }

    /// The node, if it allows an array or an object.
    fn check_type<E: Error>(self, types: TypeSet) -> Result<&'n SchemaNode, E> {
        let node = self.node()?;
        self.check_scalar(node, types, |_| false)?;
        Ok(node)
    }
}

impl<'n> StreamCheck<'_, 'n> {
    /// Follows references, to the node that has keywords.
    fn follow<E: Error>(&mut self) -> Result<&'n SchemaNode, E> {
        let mut node = self.node()?;
        while let Some((next, nullable)) = forward_target(self.text.rules.nodes, node) {
            self.id = next;
            self.nullable |= nullable;
            node = self.node()?;
        }
        Ok(node)
    }

    fn is_streamed(self) -> bool {
        self.text.rules.streamed.get(self.id).is_some_and(|streamed| *streamed)
    }
}

impl<'de> DeserializeSeed<'de> for StreamCheck<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<u64, D::Error> {
        let node = self.follow()?;
        if !self.is_streamed() {
            return deserializer.deserialize_any(AlternativesCheck(self));
        }
        if node.is_any() {
            return AnyValue(self).deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

/// Reads a value of a node that is not streamed. Of arrays and objects, the type may tell that the node accepts them all, or
/// which of its alternatives decides; else the value is built.
struct AlternativesCheck<'c, 'n>(StreamCheck<'c, 'n>);

/// How a value is checked whose type is known.
enum ByType<'c, 'n> {
    Accepted,
    Alternative(StreamCheck<'c, 'n>),
    Value,
}

impl<'c, 'n> AlternativesCheck<'c, 'n> {
    fn by_type<E: Error>(&self, types: TypeSet) -> Result<ByType<'c, 'n>, E> {
        let node = self.0.node()?;
        if node.accepts.contains(types) {
            return Ok(ByType::Accepted);
        }
        let ([Applicator::AnyOf(ids) | Applicator::OneOf(ids)], true) =
            (node.applicators.as_slice(), node.is_unconstrained())
        else {
            return Ok(ByType::Value);
        };
        let nodes = self.0.text.rules.nodes;
        let mut possible =
            ids.iter().filter(|id| !nodes.get(**id).is_some_and(|node| node.refuses.contains(types)));
        let (Some(only), None) = (possible.next(), possible.next()) else { return Ok(ByType::Value) };
        let mut check = self.0.at(*only);
        check.follow()?;
        Ok(if check.is_streamed() { ByType::Alternative(check) } else { ByType::Value })
    }
}

impl<'de> Visitor<'de> for AlternativesCheck<'_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value that conforms")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        self.0.check_value(&Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        self.0.check_value(&value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        self.0.check_value(&number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        self.0.check_value(&number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        self.0.check_value(&number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        self.0.check_value(&text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<u64, A::Error> {
        match self.by_type(TypeSet::ARRAY)? {
            ByType::Accepted => AnyValue(self.0).visit_seq(items),
            ByType::Alternative(check) => check.visit_seq(items),
            ByType::Value => self.0.check_value(&Value::deserialize(SeqAccessDeserializer::new(items))?),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<u64, A::Error> {
        match self.by_type(TypeSet::OBJECT)? {
            ByType::Accepted => AnyValue(self.0).visit_map(members),
            ByType::Alternative(check) => check.visit_map(members),
            ByType::Value => self.0.check_value(&Value::deserialize(MapAccessDeserializer::new(members))?),
        }
    }
}

impl<'de> Visitor<'de> for StreamCheck<'_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value that conforms")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        if !self.nullable {
            self.check_scalar(self.node()?, TypeSet::NULL, Value::is_null)?;
        }
        Ok(self.hash(ValueHasher::null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        self.check_scalar(self.node()?, TypeSet::BOOLEAN, |choice| choice.as_bool() == Some(value))?;
        Ok(self.hash(|hasher| hasher.boolean(value)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        self.check_number(number.into(), self.hash(|hasher| hasher.integer(number.into())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        self.check_number(number.into(), self.hash(|hasher| hasher.integer(number.into())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        let hash = self.hash(|hasher| hasher.float(number));
        self.check_number(Number::from_f64(number).ok_or_else(|| self.refuse())?, hash)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let node = self.node()?;
        self.check_scalar(node, TypeSet::STRING, |choice| choice.as_str() == Some(text))?;
        let has_format = |format: StringFormat| !self.text.rules.check_formats || format.matches(text);
        if !node.string.as_ref().is_none_or(|rules| rules.accept(text) && rules.format.is_none_or(has_format))
        {
            return Err(self.refuse());
        }
        Ok(self.hash(|hasher| hasher.string(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        const NO_RULES: &ArrayRules = &ArrayRules {
            min: None,
            max: None,
            unique_items: false,
            prefix_items: Vec::new(),
            items: None,
            contains: None,
        };
        let rules = self.check_type(TypeSet::ARRAY)?.array.as_deref().unwrap_or(NO_RULES);
        let inner = Self { hashes: self.hashes || rules.unique_items, ..self };
        let mut hasher = self.hashes.then(|| self.text.rules.hasher.array());
        let mut item_hashes = rules.unique_items.then(ItemHashes::default);
        let mut count = 0;
        loop {
            let item = match rules.prefix_items.get(count).copied().or(rules.items) {
                Some(id) => items.next_element_seed(inner.at(id)),
                None => items.next_element_seed(AnyValue(inner)),
            };
            let Some(hash) = item.map_err(|error| self.refused_at(count, error))? else { break };
            if let Some(hasher) = &mut hasher {
                hasher.write_u64(hash);
            }
            if let Some(hashes) = &mut item_hashes {
                hashes.push(hash);
            }
            count += 1;
        }
        if !is_within(count, rules.min, rules.max) {
            return Err(self.refuse());
        }
        if let Some((first, second)) = item_hashes.and_then(ItemHashes::first_duplicate) {
            let error = || ValidationError::new(&ValuePath::Root, duplicate_mismatch(first, second));
            return Err(self.refuse_with(|_| vec![error()]));
        }
        Ok(hasher.map_or(0, |hasher| hasher.finish()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let Some(rules) = self.check_type(TypeSet::OBJECT)?.object.as_deref() else {
            return AnyValue(self).visit_map(map);
        };
        let mut present: u64 = 0;
        let mut sum_of_members: u64 = 0;
        let mut count = 0;
        while let Some((name, key)) = map.next_key_seed(PropertyKey(self, rules))? {
            let position = match name {
                PropertyName::Known(position) => Some(position),
                PropertyName::Other => None,
                PropertyName::Matching(schema) => {
                    let value = map.next_value_seed(self.at(schema));
                    let value = value.map_err(|error| self.refused_at(count, error))?;
                    let member = self.hash(|hasher| hasher.member(key, value));
                    sum_of_members = sum_of_members.wrapping_add(member);
                    count += 1;
                    continue;
                }
            };
            let property = position.and_then(|at| rules.properties.get(at).map(|property| (at, property)));
            let value = match (property, rules.additional_properties) {
                (Some((at, property)), _) => {
                    present |= 1 << at;
                    let mut check = self.at(property.schema);
                    check.nullable = self.text.rules.null_is_absent && !property.required;
                    map.next_value_seed(check)
                }
                (None, Some(schema)) => map.next_value_seed(self.at(schema)),
                (None, None) => map.next_value_seed(AnyValue(self)),
            };
            let value = value.map_err(|error| self.refused_at(count, error))?;
            count += 1;
            let member = self.hash(|hasher| hasher.member(key, value));
            sum_of_members = sum_of_members.wrapping_add(member);
        }
        let is_missing = rules
            .properties
            .iter()
            .enumerate()
            .any(|(at, property)| property.required && present & (1 << at) == 0);
        if is_missing {
            return Err(self.refuse());
        }
        Ok(self.hash(|hasher| hasher.object(sum_of_members)))
    }
}

/// Reads a value that no node is about.
struct AnyValue<'c, 'n>(StreamCheck<'c, 'n>);

impl<'de> DeserializeSeed<'de> for AnyValue<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        if self.0.hashes {
            return HashOf(self.0.text.rules.hasher).deserialize(deserializer);
        }
        deserializer.deserialize_ignored_any(IgnoredAny).map(|_| 0)
    }
}

impl AnyValue<'_, '_> {
    fn visit_seq<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        if self.0.hashes {
            return HashOf(self.0.text.rules.hasher).visit_seq(items);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(0)
    }

    fn visit_map<'de, A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        if self.0.hashes {
            return HashOf(self.0.text.rules.hasher).visit_map(members);
        }
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(0)
    }
}

/// The meaning of a key for its value.
#[derive(Clone, Copy)]
enum PropertyName {
    /// The position of the property that it names.
    Known(usize),
    /// The subschema of the pattern that it matches.
    Matching(NodeId),
    Other,
}

/// Reads a key, and its hash.
struct PropertyKey<'c, 'n>(StreamCheck<'c, 'n>, &'n ObjectRules);

impl<'de> DeserializeSeed<'de> for PropertyKey<'_, '_> {
    type Value = (PropertyName, u64);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for PropertyKey<'_, '_> {
    type Value = (PropertyName, u64);

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let Self(check, rules) = self;
        let found = match (rules.pattern_properties.as_slice(), rules.property(name)) {
            (_, Some((at, _))) => PropertyName::Known(at),
            ([_, ..], None) if name.len() > MAX_PATTERN_NAME => {
                let error = || ValidationError::new(&ValuePath::Root, long_name_mismatch(name));
                return Err(check.refuse_with(|_| vec![error()]));
            }
            ([(pattern, schema), ..], None) if pattern.is_match(name) => PropertyName::Matching(*schema),
            _ => PropertyName::Other,
        };
        Ok((found, check.hash(|hasher| hasher.string(name))))
    }
}
