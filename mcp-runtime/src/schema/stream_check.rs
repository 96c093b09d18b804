//! Validates JSON text while it is parsed, without building a value.
//!
//! Structured results are validated on every call, and most of their schemas have no keyword that needs a value twice.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::check::count_mismatch;
use super::node::{Applicator, ArrayRules, Choices, NodeId, ObjectRules, SchemaNode, TypeSet};
use super::order;

/// The properties that were present are bits of one `u64`.
const MOST_PROPERTIES: usize = 64;

/// Whether every node can be checked in one pass.
pub(super) fn can_stream(nodes: &[SchemaNode]) -> bool {
    nodes.iter().all(|node| {
        let choices = node.choices.as_ref().is_none_or(|choices| {
            choices.values.iter().all(|value| !matches!(value, Value::Array(_) | Value::Object(_)))
        });
        let array = node.array.as_ref().is_none_or(|rules| !rules.unique_items && rules.contains.is_none());
        let object = node.object.as_ref().is_none_or(|rules| {
            let by_name = rules.pattern_properties.is_empty()
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
    })
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

/// Whether a text is JSON that conforms. False negatives are possible: confirm them on the value.
pub(super) fn is_valid(nodes: &[SchemaNode], json: &str, null_is_absent: bool) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let check = StreamCheck { nodes, id: 0, nullable: false, null_is_absent };
    check.deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok()
}

#[derive(Clone, Copy)]
struct StreamCheck<'n> {
    nodes: &'n [SchemaNode],
    id: NodeId,
    nullable: bool,
    null_is_absent: bool,
}

impl<'n> StreamCheck<'n> {
    fn at(self, id: NodeId) -> Self {
        Self { id, nullable: false, ..self }
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
        if allowed { Ok(()) } else { Err(mismatch()) }
    }

    fn check_number<E: Error>(self, number: Number) -> Result<(), E> {
        let node = self.node()?;
        let value = Value::Number(number);
        self.check_scalar(node, TypeSet::of(&value), |choice| order::equal(choice, &value))?;
        let Value::Number(number) = &value else { return Ok(()) };
        let breaks_rule = node.number.as_ref().is_some_and(|rules| rules.mismatch(number).is_some());
        if breaks_rule { Err(mismatch()) } else { Ok(()) }
    }

    fn node<E: Error>(self) -> Result<&'n SchemaNode, E> {
        self.nodes.get(self.id).ok_or_else(mismatch)
    }

    /// The node, if it allows an array or an object.
    fn check_type<E: Error>(self, types: TypeSet) -> Result<&'n SchemaNode, E> {
        let node = self.node()?;
        self.check_scalar(node, types, |_| false)?;
        Ok(node)
    }
}

fn mismatch<E: Error>() -> E {
    E::custom("does not conform")
}

impl<'de> DeserializeSeed<'de> for StreamCheck<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let mut node = self.node()?;
        while let Some((next, nullable)) = forward_target(self.nodes, node) {
            self.id = next;
            self.nullable |= nullable;
            node = self.node()?;
        }
        if node.is_any() {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ());
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
        if self.nullable {
            return Ok(());
        }
        self.check_scalar(self.node()?, TypeSet::NULL, Value::is_null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.check_scalar(self.node()?, TypeSet::BOOLEAN, |choice| choice.as_bool() == Some(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.check_number(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.check_number(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.check_number(Number::from_f64(number).ok_or_else(mismatch)?)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let node = self.node()?;
        self.check_scalar(node, TypeSet::STRING, |choice| choice.as_str() == Some(text))?;
        let breaks_rule = node.string.as_ref().is_some_and(|rules| rules.mismatch(text).is_some());
        if breaks_rule { Err(mismatch()) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        const NO_RULES: &ArrayRules = &ArrayRules {
            min: None,
            max: None,
            unique_items: false,
            prefix_items: Vec::new(),
            items: None,
            contains: None,
        };
        let rules = self.check_type(TypeSet::ARRAY)?.array.as_deref().unwrap_or(NO_RULES);
        let mut count = 0;
        loop {
            let item = match rules.prefix_items.get(count).copied().or(rules.items) {
                Some(id) => items.next_element_seed(self.at(id))?,
                None => items.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if item.is_none() {
                break;
            }
            count += 1;
        }
        if count_mismatch(count, rules.min, rules.max, "item").is_some() { Err(mismatch()) } else { Ok(()) }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some(rules) = self.check_type(TypeSet::OBJECT)?.object.as_deref() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut present: u64 = 0;
        while let Some(position) = map.next_key_seed(PropertyKey(rules))? {
            let property = position.and_then(|at| rules.properties.get(at).map(|property| (at, property)));
            match (property, rules.additional_properties) {
                (Some((at, property)), _) => {
                    present |= 1 << at;
                    let mut check = self.at(property.schema);
                    check.nullable = self.null_is_absent && !property.required;
                    map.next_value_seed(check)?;
                }
                (None, Some(schema)) => map.next_value_seed(self.at(schema))?,
                (None, None) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let is_missing = rules
            .properties
            .iter()
            .enumerate()
            .any(|(at, property)| property.required && present & (1 << at) == 0);
        if is_missing { Err(mismatch()) } else { Ok(()) }
    }
}

/// Deserializes a key as the position of the property that it names.
struct PropertyKey<'n>(&'n ObjectRules);

impl<'de> DeserializeSeed<'de> for PropertyKey<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for PropertyKey<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.property(name).map(|(at, _)| at))
    }
}
