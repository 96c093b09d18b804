//! Replaces floats such as `1.0` by integers where a compiled schema has integers only: schemas accept both notations,
//! typed decoding does not. The value conforms to the schema.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    check::{AddressHasher, MAX_PATTERN_NAME, holds_containers},
    coerce::integer_of,
    equality,
    node::{Applicator, NodeId, SchemaNode, TypeSet},
};

/// How deep references and alternatives are followed; deeper values are left unchanged.
const MAX_DEPTH: usize = 64;

/// After this many arrays and objects with others in them, those that were visited are remembered.
const MANY_VISITS: usize = 500;

/// One walk over a value.
pub(super) struct WholeNumbers<'n> {
    nodes: &'n [SchemaNode],
    visits: usize,
    /// Where several keywords apply to a value that contains its like, they are applied along exponentially many paths.
    visited: HashSet<(NodeId, *const Value), AddressHasher>,
}

impl<'n> WholeNumbers<'n> {
    pub(super) fn new(nodes: &'n [SchemaNode]) -> Self {
        Self { nodes, visits: 0, visited: HashSet::default() }
    }

    /// Replaces the floats in a value of this node.
    pub(super) fn replace(&mut self, id: NodeId, value: &mut Value, depth: usize) {
        let Some(node) = self.nodes.get(id).filter(|_| depth <= MAX_DEPTH) else { return };
        match value {
            Value::Null | Value::Bool(_) | Value::String(_) => return,
            Value::Number(number) => {
                let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return };
                let fractions = TypeSet::NUMBER.without(TypeSet::INTEGER);
                if node.refuses.contains(fractions) && !node.refuses.contains(TypeSet::INTEGER) {
                    if let Some(integer) = integer_of(float) {
                        *value = Value::Number(integer);
                    }
                    return;
                }
            }
            Value::Array(_) | Value::Object(_) if !self.is_first(id, value) => return,
            Value::Array(_) | Value::Object(_) => {}
        }
        for applicator in &node.applicators {
            match applicator {
                Applicator::Ref(id) => self.replace(*id, value, depth + 1),
                Applicator::AllOf(ids) => ids.iter().for_each(|id| self.replace(*id, value, depth + 1)),
                Applicator::AnyOf(ids) | Applicator::OneOf(ids) => {
                    if let Some(id) = self.branch(ids, value) {
                        self.replace(id, value, depth + 1);
                    }
                }
                _ => {}
            }
        }
        match (value, &node.array, &node.object) {
            (Value::Array(items), Some(rules), _) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some(id) = rules.prefix_items.get(index).copied().or(rules.items) {
                        self.replace(id, item, depth + 1);
                    }
                }
            }
            (Value::Object(members), _, Some(rules)) => {
                for (name, member) in members {
                    let property = rules.property(name).map(|(_, property)| property.schema);
                    let is_short = name.len() <= MAX_PATTERN_NAME;
                    let patterns = rules.pattern_properties.iter().filter(|_| is_short);
                    let matching = patterns.filter(|(pattern, _)| pattern.is_match(name)).map(|(_, id)| *id);
                    let mut is_known = false;
                    for id in property.into_iter().chain(matching) {
                        is_known = true;
                        self.replace(id, member, depth + 1);
                    }
                    if let Some(id) = rules.additional_properties.filter(|_| !is_known) {
                        self.replace(id, member, depth + 1);
                    }
                }
            }
            _ => {}
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

    /// The only alternative whose types, constants and required properties match a value.
    fn branch(&self, ids: &[NodeId], value: &Value) -> Option<NodeId> {
        let own = TypeSet::of(value);
        let matches = |id: &&NodeId| {
            self.nodes
                .get(**id)
                .is_some_and(|node| !node.refuses.contains(own) && self.tags_match(node, value))
        };
        let mut candidates = ids.iter().filter(matches);
        candidates.next().filter(|_| candidates.next().is_none()).copied()
    }

    fn tags_match(&self, node: &SchemaNode, value: &Value) -> bool {
        let (Some(rules), Some(members)) = (&node.object, value.as_object()) else { return true };
        if rules.properties.is_empty() {
            return true;
        }
        rules.properties.iter().all(|property| {
            let Some(member) = members.get(&property.name) else { return !property.required };
            let choices = self.nodes.get(property.schema).and_then(|node| node.choices.as_ref());
            let constant =
                choices.filter(|choices| choices.is_const).and_then(|choices| choices.values.first());
            constant.is_none_or(|constant| equality::equal(constant, member))
        }) && rules.required.iter().all(|name| members.contains_key(name))
    }
}
