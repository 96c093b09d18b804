//! Validates JSON text while it is parsed, without building a value of arrays and objects.
//!
//! Structured results are validated on every call, and most of their schemas have no keyword that needs a value twice.
//! Where one has, the value below it is built. Scalars are checked as everywhere, unless their type says enough.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
    value::{MapAccessDeserializer, SeqAccessDeserializer},
};
use serde_json::Value;

use super::Validator;
use super::alternatives::not_null;
use super::check::{MAX_PATTERN_NAME, broken_count};
use super::node::{Applicator, NodeId, ObjectRules, SchemaNode, TypeSet, is_container};

/// The properties that were present are bits of one `u64`.
const MOST_PROPERTIES: usize = 64;

/// Determines of each node whether it can be checked while the text is parsed; for the others a value is built.
pub(super) fn settle_streams(nodes: &mut [SchemaNode]) {
    let targets: Vec<_> = nodes.iter().map(|node| forward_target(nodes, node)).collect();
    let streams = |node: &SchemaNode| {
        let choices = node.choices.as_ref().is_none_or(|choices| !choices.values.iter().any(is_container));
        let array = node.array.as_ref().is_none_or(|rules| rules.contains.is_none() && !rules.unique_items);
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
        choices && array && object && (node.applicators.is_empty() || node.forwards_to.is_some())
    };
    for (node, target) in nodes.iter_mut().zip(targets) {
        node.forwards_to = target;
        node.streams = streams(node);
    }
}

/// The target of a node that consists of a reference, and whether it also allows `null`.
fn forward_target(nodes: &[SchemaNode], node: &SchemaNode) -> Option<(NodeId, bool)> {
    let [applied] = node.applicators.as_slice() else { return None };
    if !node.is_unconstrained() {
        return None;
    }
    match applied {
        Applicator::Ref(id) => Some((*id, false)),
        Applicator::AnyOf(of) | Applicator::OneOf(of) => {
            let others = not_null(nodes, &of.ids);
            let [other] = others.as_slice() else { return None };
            // in `oneOf` the other schema must not accept null as well
            let is_alone = nodes.get(*other).is_some_and(|node| node.refuses.contains(TypeSet::NULL));
            let is_nullable = of.ids.len() == 2 && (is_alone || matches!(applied, Applicator::AnyOf(_)));
            is_nullable.then_some((*other, true))
        }
        _ => None,
    }
}

/// Whether a text is JSON that conforms. False negatives are possible: confirm them on the value.
pub(super) fn is_valid(validator: &Validator, json: &str) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let check = StreamCheck { validator, id: 0, nullable: false };
    check.deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok()
}

/// Reads a value, with an error if it does not conform.
#[derive(Clone, Copy)]
struct StreamCheck<'n> {
    validator: &'n Validator,
    id: NodeId,
    nullable: bool,
}

/// The error of a value that a node refuses.
#[cold]
fn refusal<E: Error>() -> E {
    E::custom("does not conform")
}

fn accept_if<E: Error>(conforms: bool) -> Result<(), E> {
    if conforms { Ok(()) } else { Err(refusal()) }
}

impl<'n> StreamCheck<'n> {
    fn at(self, id: NodeId) -> Self {
        Self { id, nullable: false, ..self }
    }

    /// Checks a value that was built.
    fn check_value<E: Error>(self, value: &Value) -> Result<(), E> {
        let node = self.node()?;
        let is_accepted = self.accepts(TypeSet::of(value))? || (self.nullable && value.is_null());
        // most numbers have bounds and nothing else
        let is_within_bounds = || match (value, &node.number) {
            (Value::Number(number), Some(rules)) if node.streams && node.choices.is_none() => {
                !node.refuses.contains(TypeSet::of(value)) && rules.broken(number).is_none()
            }
            _ => false,
        };
        accept_if(is_accepted || is_within_bounds() || self.validator.validation().check(self.id, value))
    }

    /// Whether the type of a value tells that the node accepts it.
    fn accepts<E: Error>(self, types: TypeSet) -> Result<bool, E> {
        self.node().map(|node| node.accepts.contains(types))
    }

    fn node<E: Error>(self) -> Result<&'n SchemaNode, E> {
        self.validator.nodes.get(self.id).ok_or_else(refusal)
    }

    /// Follows references, to the node that has keywords.
    fn follow<E: Error>(&mut self) -> Result<&'n SchemaNode, E> {
        let mut node = self.node()?;
        while let Some((next, nullable)) = node.forwards_to {
            self.id = next;
            self.nullable |= nullable;
            node = self.node()?;
        }
        Ok(node)
    }
}

impl<'de> DeserializeSeed<'de> for StreamCheck<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let node = self.follow()?;
        if node.accepts == TypeSet::ANY {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StreamCheck<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value that conforms")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.check_value(&Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.check_value(&value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.check_value(&number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.check_value(&number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.check_value(&number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.accepts(TypeSet::STRING)? { Ok(()) } else { self.check_value(&text.into()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let node = self.node()?;
        if node.accepts.contains(TypeSet::ARRAY) {
            return IgnoredAny.visit_seq(items).map(drop);
        }
        let Some(rules) = node.array.as_deref().filter(|_| node.streams) else {
            return self.check_value(&Value::deserialize(SeqAccessDeserializer::new(items))?);
        };
        accept_if(!node.refuses.contains(TypeSet::ARRAY))?;
        let mut count = 0;
        loop {
            let item = match rules.prefix_items.get(count).copied().or(rules.items) {
                Some(id) => items.next_element_seed(self.at(id))?,
                None => items.next_element::<IgnoredAny>()?.map(drop),
            };
            if item.is_none() {
                break;
            }
            count += 1;
        }
        accept_if(broken_count(count, rules.min, rules.max, "item").is_none())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let node = self.node()?;
        if node.accepts.contains(TypeSet::OBJECT) {
            return IgnoredAny.visit_map(map).map(drop);
        }
        let Some(rules) = node.object.as_deref().filter(|_| node.streams) else {
            return self.check_value(&Value::deserialize(MapAccessDeserializer::new(map))?);
        };
        accept_if(!node.refuses.contains(TypeSet::OBJECT))?;
        let mut present: u64 = 0;
        while let Some(name) = map.next_key_seed(PropertyKey(rules))? {
            let schema = match name {
                PropertyName::Known(position) => {
                    present |= 1 << position;
                    rules.properties.get(position).map(|property| {
                        (property.schema, self.validator.null_is_absent && !property.required)
                    })
                }
                PropertyName::Matching(schema) => Some((schema, false)),
                PropertyName::Other => rules.additional_properties.map(|schema| (schema, false)),
            };
            match schema {
                Some((id, nullable)) => map.next_value_seed(Self { id, nullable, ..self })?,
                None => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        let mut properties = rules.properties.iter().enumerate();
        accept_if(properties.all(|(at, property)| !property.required || present & (1 << at) != 0))
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

/// Reads a key.
struct PropertyKey<'n>(&'n ObjectRules);

impl<'de> DeserializeSeed<'de> for PropertyKey<'_> {
    type Value = PropertyName;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for PropertyKey<'_> {
    type Value = PropertyName;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<PropertyName, E> {
        match (self.0.pattern_properties.as_slice(), self.0.property(name)) {
            (_, Some((at, _))) => Ok(PropertyName::Known(at)),
            ([_, ..], None) if name.len() > MAX_PATTERN_NAME => Err(refusal()),
            ([(pattern, schema), ..], None) if pattern.is_match(name) => Ok(PropertyName::Matching(*schema)),
            _ => Ok(PropertyName::Other),
        }
    }
}
