//! Checks JSON text while it is read, without building a value.
//!
//! `validate_str` tries this first: every structured result is checked before it is sent, and most schemas
//! of results have no keyword that needs to see a value twice.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::check::out_of_bounds;
use super::node::{Applied, ArrayRules, Choices, Id, Node, ObjectRules, Types};
use super::number;

/// Seen properties are one word of bits.
const MOST_PROPERTIES: usize = 64;

/// Whether every node can be checked in one pass.
pub(super) fn can_stream(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| {
        let choices = node.choices.as_ref().is_none_or(|choices| {
            choices.values.iter().all(|value| !matches!(value, Value::Array(_) | Value::Object(_)))
        });
        let array = node.array.as_ref().is_none_or(|rules| !rules.unique && rules.contains.is_none());
        let object = node.object.as_ref().is_none_or(|rules| {
            let by_name = rules.patterns.is_empty() && rules.names.is_none() && rules.dependent.is_empty();
            // A repeated key is one property of a value, so keys must not be counted.
            let counted = rules.least.is_some() || rules.most.is_some();
            by_name
                && !counted
                && rules.unevaluated.is_none()
                && rules.required.is_empty()
                && rules.properties.len() <= MOST_PROPERTIES
        });
        choices && array && object && (node.applied.is_empty() || forward(nodes, node).is_some())
    })
}

/// Where a node leads that only refers to another, or allows `null` besides.
fn forward(nodes: &[Node], node: &Node) -> Option<(Id, bool)> {
    let [applied] = node.applied.as_slice() else { return None };
    if !node.is_unconstrained() {
        return None;
    }
    match applied {
        Applied::Ref(id) => Some((*id, false)),
        Applied::AnyOf(ids) | Applied::OneOf(ids) => {
            let [first, second] = ids.as_slice() else { return None };
            let is_null = |id: &Id| nodes.get(*id).is_some_and(Node::is_null);
            let one_of = matches!(applied, Applied::OneOf(_));
            let (other, nullable) = match (is_null(first), is_null(second)) {
                (true, false) => (*second, true),
                (false, true) => (*first, true),
                _ => return None,
            };
            // In `oneOf` the other must not accept null as well; only a plain type tells that at a glance.
            let excludes_null = |node: &Node| node.types.is_some_and(|types| !types.contains(Types::NULL));
            (!one_of || nodes.get(other).is_some_and(excludes_null)).then_some((other, nullable))
        }
        _ => None,
    }
}

/// Whether text is JSON that conforms; an answer of no has to be confirmed on the value.
pub(super) fn conforms(nodes: &[Node], json: &str, null_is_absent: bool) -> bool {
    let mut reader = serde_json::Deserializer::from_str(json);
    let check = Check { nodes, id: 0, nullable: false, null_is_absent };
    check.deserialize(&mut reader).is_ok() && reader.end().is_ok()
}

#[derive(Clone, Copy)]
struct Check<'n> {
    nodes: &'n [Node],
    id: Id,
    nullable: bool,
    null_is_absent: bool,
}

impl<'n> Check<'n> {
    fn at(self, id: Id) -> Self {
        Self { id, nullable: false, ..self }
    }

    fn scalar<E: Error>(self, node: &Node, kind: Types, is_choice: impl Fn(&Value) -> bool) -> Result<(), E> {
        let chosen = |choices: &Choices| choices.values.iter().any(&is_choice);
        let allowed = !node.never
            && node.types.is_none_or(|types| types.contains(kind))
            && node.choices.as_ref().is_none_or(chosen);
        if allowed { Ok(()) } else { Err(refused()) }
    }

    fn number<E: Error>(self, found: Number) -> Result<(), E> {
        let node = self.node()?;
        let found = Value::Number(found);
        self.scalar(node, Types::of(&found), |choice| super::order::equal(choice, &found))?;
        let Value::Number(found) = &found else { return Ok(()) };
        let broken = node.number.as_ref().is_some_and(|rules| {
            rules.multiple_of.as_ref().is_some_and(|divisor| !number::is_multiple(found, divisor))
                || rules.minimum.as_ref().is_some_and(|bound| number::compare(found, bound).is_lt())
                || rules.maximum.as_ref().is_some_and(|bound| number::compare(found, bound).is_gt())
                || rules.above.as_ref().is_some_and(|bound| number::compare(found, bound).is_le())
                || rules.below.as_ref().is_some_and(|bound| number::compare(found, bound).is_ge())
        });
        if broken { Err(refused()) } else { Ok(()) }
    }

    fn node<E: Error>(self) -> Result<&'n Node, E> {
        self.nodes.get(self.id).ok_or_else(refused)
    }

    /// Refuses an array or object where the node wants something else.
    fn nested<E: Error>(self, kind: Types) -> Result<&'n Node, E> {
        let node = self.node()?;
        self.scalar(node, kind, |_| false)?;
        Ok(node)
    }
}

fn refused<E: Error>() -> E {
    E::custom("does not conform")
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let mut node = self.node()?;
        while let Some((next, nullable)) = forward(self.nodes, node) {
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

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value that conforms")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.nullable {
            return Ok(());
        }
        self.scalar(self.node()?, Types::NULL, Value::is_null)
    }

    fn visit_bool<E: Error>(self, found: bool) -> Result<(), E> {
        self.scalar(self.node()?, Types::BOOLEAN, |choice| choice.as_bool() == Some(found))
    }

    fn visit_i64<E: Error>(self, found: i64) -> Result<(), E> {
        self.number(found.into())
    }

    fn visit_u64<E: Error>(self, found: u64) -> Result<(), E> {
        self.number(found.into())
    }

    fn visit_f64<E: Error>(self, found: f64) -> Result<(), E> {
        self.number(Number::from_f64(found).ok_or_else(refused)?)
    }

    fn visit_str<E: Error>(self, found: &str) -> Result<(), E> {
        let node = self.node()?;
        self.scalar(node, Types::STRING, |choice| choice.as_str() == Some(found))?;
        let broken = node.text.as_ref().is_some_and(|rules| rules.refuse(found).is_some());
        if broken { Err(refused()) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        const NO_RULES: &ArrayRules = &ArrayRules {
            least: None,
            most: None,
            unique: false,
            prefix: Vec::new(),
            items: None,
            contains: None,
        };
        let rules = self.nested(Types::ARRAY)?.array.as_deref().unwrap_or(NO_RULES);
        let mut count = 0;
        loop {
            let more = match rules.prefix.get(count).copied().or(rules.items) {
                Some(id) => items.next_element_seed(self.at(id))?,
                None => items.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if more.is_none() {
                break;
            }
            count += 1;
        }
        if out_of_bounds(count, rules.least, rules.most, "item").is_some() { Err(refused()) } else { Ok(()) }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some(rules) = self.nested(Types::OBJECT)?.object.as_deref() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut seen: u64 = 0;
        while let Some(known) = map.next_key_seed(Key(rules))? {
            let property = known.and_then(|at| rules.properties.get(at).map(|property| (at, property)));
            match (property, rules.additional) {
                (Some((at, property)), _) => {
                    seen |= 1 << at;
                    let mut check = self.at(property.schema);
                    check.nullable = self.null_is_absent && !property.required;
                    map.next_value_seed(check)?;
                }
                (None, Some(schema)) => map.next_value_seed(self.at(schema))?,
                (None, None) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let missing =
            rules.properties.iter().enumerate().any(|(at, one)| one.required && seen & (1 << at) == 0);
        if missing { Err(refused()) } else { Ok(()) }
    }
}

/// Reads a key as the position of the property it names.
struct Key<'n>(&'n ObjectRules);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.property(name).map(|(at, _)| at))
    }
}
