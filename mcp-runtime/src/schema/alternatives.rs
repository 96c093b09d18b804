//! Reports why a value matches none of the alternatives of `anyOf` or `oneOf`.

use serde_json::Value;

use super::check::{Validation, choice_mismatch, describe_choices, type_mismatch};
use super::error::{Mismatch, ValuePath, summarize};
use super::node::{Applicator, Choices, NodeId, ObjectRules, SchemaNode, TypeSet};

/// How deep alternatives inside alternatives are described.
const MAX_DESCRIPTION_DEPTH: usize = 4;

impl<'n> Validation<'n> {
    /// Reports the errors of the alternative that was probably intended, or that none matches.
    pub(super) fn fail_alternatives(
        &mut self,
        ids: &[NodeId],
        value: &Value,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> bool {
        if self.fail_fast {
            return false;
        }
        let alternatives: Vec<NodeId> =
            ids.iter().copied().filter(|id| !self.target(*id).is_some_and(SchemaNode::is_null)).collect();
        if let [only] = alternatives.as_slice() {
            return self.check(*only, value, path, depth);
        }
        let mut candidates: Vec<NodeId> =
            alternatives.iter().copied().filter(|id| self.types(*id).contains(TypeSet::of(value))).collect();
        if value.is_object() {
            if let Some(tag) = self.tag(&candidates) {
                let choices = self.tag_choices(&candidates, tag);
                let Some(tag_value) = value.get(tag) else {
                    let mismatch = Mismatch::missing(describe_choices(&choices, false));
                    return self.fail(&ValuePath::Key(path, tag), || mismatch);
                };
                candidates.retain(|id| {
                    self.property_choices(*id, tag).is_some_and(|choices| choices.values.contains(tag_value))
                });
                if candidates.is_empty() {
                    let mismatch = choice_mismatch(&choices, false, tag_value);
                    return self.fail(&ValuePath::Key(path, tag), || mismatch);
                }
            } else {
                // an externally tagged variant has its tag as a key
                let has_required = |rules: &ObjectRules| {
                    let mut required = rules.properties.iter().filter(|property| property.required);
                    required.all(|property| value.get(&property.name).is_some())
                };
                let complete: Vec<NodeId> = candidates
                    .iter()
                    .copied()
                    .filter(|id| self.object_rules(*id).is_some_and(has_required))
                    .collect();
                if complete.len() == 1 {
                    candidates = complete;
                }
            }
        }
        match candidates.as_slice() {
            [only] => self.check(*only, value, path, depth),
            [] => self.fail_all(&alternatives, true, value, path),
            several => self.fail_all(several, false, value, path),
        }
    }

    /// Reports that a value matches none of the alternatives; `none_of_type` if its type is not allowed by any.
    fn fail_all(
        &mut self,
        alternatives: &[NodeId],
        none_of_type: bool,
        value: &Value,
        path: &ValuePath<'_>,
    ) -> bool {
        let choices: Option<Vec<&Choices>> =
            alternatives.iter().map(|id| self.target(*id).and_then(|node| node.choices.as_ref())).collect();
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            let values: Vec<&Value> = choices.into_iter().flat_map(|choices| &choices.values).collect();
            return self.fail(path, || choice_mismatch(&values, false, value));
        }
        let types = alternatives.iter().fold(TypeSet::NONE, |types, id| types.union(self.types(*id)));
        let is_by_type = |id: &NodeId| {
            self.types(*id) == types
                || self.target(*id).is_some_and(|node| node.types.is_some() && node.object.is_none())
        };
        if none_of_type && alternatives.iter().all(is_by_type) {
            return self.fail(path, || type_mismatch(types, value));
        }
        let expected = self.describe_each(alternatives, MAX_DESCRIPTION_DEPTH).join("; ");
        let message = format!("{} matches none of: {expected}", summarize(value));
        self.fail(path, || Mismatch::new(expected, message))
    }

    /// The values that a node accepts, as in `an integer` or `one of "a", "b"`.
    pub(super) fn describe(&self, id: NodeId) -> String {
        self.describe_within(id, MAX_DESCRIPTION_DEPTH)
    }

    /// The distinct descriptions of several nodes.
    fn describe_each(&self, ids: &[NodeId], levels: usize) -> Vec<String> {
        let mut descriptions: Vec<String> = Vec::new();
        for id in ids {
            let description = self.describe_within(*id, levels);
            if !descriptions.contains(&description) {
                descriptions.push(description);
            }
        }
        descriptions
    }

    fn describe_within(&self, id: NodeId, levels: usize) -> String {
        let Some(node) = self.target(id).filter(|_| levels > 0) else { return "a value".to_owned() };
        if let Some(choices) = &node.choices {
            return describe_choices(&choices.values.iter().collect::<Vec<_>>(), choices.is_const);
        }
        let required = |rules: &ObjectRules| {
            let declared = rules.properties.iter().filter(|property| property.required);
            declared
                .map(|property| property.name.as_str())
                .chain(rules.required.iter().map(String::as_str))
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
        };
        if let Some(names) =
            node.object.as_ref().map(|rules| required(rules)).filter(|names| !names.is_empty())
            && node.types.is_none_or(|types| types == TypeSet::OBJECT)
        {
            return format!("an object with {}", names.join(", "));
        }
        if let Some(types) = node.types {
            return types.describe();
        }
        for applicator in &node.applicators {
            if let Applicator::AnyOf(ids) | Applicator::OneOf(ids) = applicator {
                if let Some(tag) = self.tag(ids) {
                    let choices = describe_choices(&self.tag_choices(ids, tag), false);
                    return format!("an object with `{tag}`: {choices}");
                }
                return self.describe_each(ids, levels - 1).join(" or ");
            }
        }
        "a value".to_owned()
    }

    /// The node itself, or the one that it refers to if it consists of a reference.
    fn target(&self, id: NodeId) -> Option<&'n SchemaNode> {
        let mut node = self.nodes.get(id)?;
        // this terminates: compilation rejects reference cycles
        while let ([Applicator::Ref(next)], true) = (node.applicators.as_slice(), node.is_unconstrained()) {
            node = self.nodes.get(*next)?;
        }
        Some(node)
    }

    fn object_rules(&self, id: NodeId) -> Option<&'n ObjectRules> {
        self.target(id).and_then(|node| node.object.as_deref())
    }

    /// The types that a node allows.
    fn types(&self, id: NodeId) -> TypeSet {
        let Some(node) = self.target(id) else { return TypeSet::ANY };
        let of_choices = node.choices.as_ref().map_or(TypeSet::ANY, |choices| {
            choices.values.iter().fold(TypeSet::NONE, |types, value| types.union(TypeSet::of(value)))
        });
        node.types.unwrap_or(TypeSet::ANY).intersection(of_choices)
    }

    /// The required property whose value distinguishes several object alternatives.
    fn tag(&self, ids: &[NodeId]) -> Option<&'n str> {
        let (first, rest) = ids.split_first()?;
        let required = self.object_rules(*first)?.properties.iter().filter(|property| property.required);
        let mut names = required.map(|property| property.name.as_str());
        names.find(|name| {
            !rest.is_empty()
                && self.property_choices(*first, name).is_some()
                && rest.iter().all(|id| self.property_choices(*id, name).is_some())
        })
    }

    /// The values of a tag that tell the alternatives apart.
    fn tag_choices(&self, ids: &[NodeId], tag: &str) -> Vec<&'n Value> {
        let choices = ids.iter().filter_map(|id| self.property_choices(*id, tag));
        choices.flat_map(|choices| &choices.values).collect()
    }

    /// The choices of a required property.
    fn property_choices(&self, id: NodeId, name: &str) -> Option<&'n Choices> {
        let (_, property) = self.object_rules(id)?.property(name)?;
        self.target(property.schema).filter(|_| property.required)?.choices.as_ref()
    }
}
