//! Checks objects: their properties, and names that are not properties.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::{MAX_ERRORS, MAX_PATTERN_NAME, Validation, broken_count, long_name_mismatch};
use super::error::{Mismatch, PathStep, ValidationError, path_text, quote, truncate};
use super::node::{Applicator, NodeId, ObjectRules};
use super::suggest::nearest;

/// The most names that a message about another name lists.
const MAX_LISTED: usize = 12;

impl<'a> Validation<'a> {
    pub(super) fn check_object(&mut self, rules: &'a ObjectRules, map: &'a Map<String, Value>) -> bool {
        let compared = rules.properties.len() + rules.required.len() + rules.dependent_required.len();
        if !self.takes_steps(compared) {
            return false;
        }
        let mut is_valid = self.fail_if(broken_count(map.len(), rules.min, rules.max, "property"));
        for property in &rules.properties {
            if self.fail_fast && !is_valid {
                return false;
            }
            let name = property.name.as_str();
            match map.get(name) {
                Some(Value::Null) if self.null_is_absent && !property.required => {}
                Some(value) => {
                    let is_accepted = self.check_at(PathStep::Key(name), property.schema, value);
                    if !is_accepted && !property.required && value.as_str() == Some("") {
                        self.advise_absence();
                    }
                    is_valid &= is_accepted;
                }
                None if property.required => is_valid = self.fail_missing(property.schema, name),
                None => {}
            }
        }
        for name in &rules.required {
            if !map.contains_key(name) {
                is_valid = self.fail_at(name, || Mismatch::missing("a value".to_owned()));
            }
        }
        for (name, required) in rules.dependent_required.iter().filter(|(name, _)| map.contains_key(name)) {
            if !self.takes_steps(required.len()) {
                return false;
            }
            for other in required.iter().filter(|other| !map.contains_key(*other)) {
                is_valid = self.fail_at(other, || {
                    Mismatch::new("a value", format!("is missing (required by `{name}`)"))
                });
            }
        }
        if self.fail_fast && !is_valid {
            return false;
        }
        is_valid & self.check_names(rules, map)
    }

    fn fail_missing(&mut self, schema: NodeId, name: &'a str) -> bool {
        if self.fail_fast {
            return false;
        }
        let expected = self.describe(schema);
        self.fail_at(name, || Mismatch::missing(expected))
    }

    /// Checks `propertyNames`, `patternProperties` and `additionalProperties`.
    fn check_names(&mut self, rules: &ObjectRules, map: &'a Map<String, Value>) -> bool {
        let properties_only = rules.pattern_properties.is_empty()
            && rules.property_names.is_none()
            && rules.additional_properties.is_none();
        if properties_only && (self.fail_fast || rules.properties.is_empty()) {
            return true;
        }
        let mut is_valid = true;
        for (name, value) in map {
            if (self.fail_fast && !is_valid) || self.is_report_full() {
                return false;
            }
            if rules.property_names.is_some_and(|names| !self.allows_name(names, name)) {
                let message = || format!("`{}` is not an allowed name here", truncate(name));
                is_valid = self.fail(|| Mismatch::new("another name", message()));
            }
            let mut is_known = rules.property(name).is_some();
            if name.len() > MAX_PATTERN_NAME && !rules.pattern_properties.is_empty() {
                is_valid = self.fail(|| long_name_mismatch(name));
                continue;
            }
            if !self.takes_steps(rules.pattern_steps(name)) {
                return false;
            }
            for (pattern, schema) in &rules.pattern_properties {
                if pattern.is_match(name) {
                    is_known = true;
                    is_valid &= self.check_at(PathStep::Key(name), *schema, value);
                }
            }
            match rules.additional_properties {
                _ if is_known => {}
                Some(schema) => is_valid &= self.check_additional(schema, rules, map, (name, value)),
                None if !self.fail_fast && rules.unevaluated_properties.is_none() => {
                    self.hint(rules, map, name);
                }
                None => {}
            }
        }
        is_valid
    }

    /// Whether `propertyNames` allows a name.
    fn allows_name(&mut self, names: NodeId, name: &str) -> bool {
        let name = Value::from(name);
        let mut validation = Validation::new(self.nodes, false);
        (validation.check_formats, validation.steps_left) = (self.check_formats, self.steps_left);
        let is_allowed = validation.check(names, &name);
        self.steps_left = validation.steps_left;
        is_allowed
    }

    fn check_additional(
        &mut self,
        schema: NodeId,
        rules: &ObjectRules,
        map: &Map<String, Value>,
        (name, value): (&'a str, &'a Value),
    ) -> bool {
        if !self.nodes.get(schema).is_some_and(|node| node.never) {
            return self.check_at(PathStep::Key(name), schema, value);
        }
        // a map whose keys are integers, say, has patterns and no names
        if rules.properties.is_empty()
            && let [(pattern, _)] = rules.pattern_properties.as_slice()
        {
            return self.fail(|| {
                let (key, pattern) = (quote(name), pattern.as_str());
                let what = match pattern {
                    r"^-?\d+$" => "is not an integer".to_owned(),
                    r"^\d+$" => "is not an integer of 0 or more".to_owned(),
                    other => format!("does not match the pattern `{other}`"),
                };
                Mismatch::new(format!("keys matching `{pattern}`"), format!("the key {key} {what}"))
            });
        }
        let depth = self.path.len();
        self.fail(|| match similar_property(rules, map, name) {
            Some(similar) => Mismatch::new(format!("`{similar}`"), unknown_name(name, Some(similar), depth)),
            None => {
                let mut message = unknown_name(name, None, depth);
                // the names of arguments are in the signature, and a struct of which nothing is required may be a map
                let is_map = depth > 0 && rules.properties.iter().all(|property| !property.required);
                if is_map && (1..=MAX_LISTED).contains(&rules.properties.len()) {
                    let known = rules.properties.iter().map(|property| format!("`{}`", property.name));
                    message.push_str(&format!("; the names are {}", known.collect::<Vec<_>>().join(", ")));
                }
                Mismatch::new("a known name", message)
            }
        })
    }

    /// Records an unknown name that is allowed but is probably a misspelt property.
    fn hint(&mut self, rules: &ObjectRules, map: &Map<String, Value>, name: &str) {
        self.compared_names += 1;
        if self.compared_names > MAX_ERRORS {
            return;
        }
        if let Some(similar) = similar_property(rules, map, name) {
            let message = unknown_name(name, Some(similar), self.path.len());
            let mismatch = Mismatch::new(format!("`{similar}`"), message);
            self.hints.push(ValidationError::new(path_text(&self.path), mismatch));
        }
    }

    /// Checks `unevaluatedProperties`, which applies to the names that no other keyword evaluates.
    pub(super) fn check_unevaluated(
        &mut self,
        id: NodeId,
        schema: NodeId,
        value: &'a Value,
        map: &'a Map<String, Value>,
    ) -> bool {
        let mut evaluated = HashSet::new();
        self.collect_evaluated(id, true, (value, map), &mut evaluated);
        let no_rules = ObjectRules::default();
        let mut is_valid = true;
        for (name, member) in map.iter().filter(|(name, _)| !evaluated.contains(name.as_str())) {
            is_valid &= self.check_additional(schema, &no_rules, map, (name, member));
        }
        is_valid
    }

    fn collect_evaluated(
        &mut self,
        id: NodeId,
        is_outermost: bool,
        (value, map): (&'a Value, &'a Map<String, Value>),
        evaluated: &mut HashSet<&'a str>,
    ) {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id).filter(|_| self.takes_steps(map.len())) else { return };
        if let Some(rules) = &node.object {
            if !self.takes_steps(map.keys().map(|name| rules.pattern_steps(name)).sum()) {
                return;
            }
            let all = rules.additional_properties.is_some()
                || (!is_outermost && rules.unevaluated_properties.is_some());
            let matches_pattern =
                |name: &str| rules.pattern_properties.iter().any(|(pattern, _)| pattern.is_match(name));
            let names = map.keys().map(String::as_str);
            evaluated
                .extend(names.filter(|name| all || rules.property(name).is_some() || matches_pattern(name)));
        }
        let mut applied: Vec<NodeId> = Vec::new();
        for applicator in &node.applicators {
            match applicator {
                Applicator::Ref(id) => applied.push(*id),
                Applicator::AllOf(ids) => applied.extend(ids),
                Applicator::AnyOf(of) | Applicator::OneOf(of) => {
                    applied.extend(of.ids.iter().filter(|id| self.matches(**id, value)));
                }
                Applicator::Not(_) => {}
                Applicator::If { test, then, otherwise } => {
                    if self.matches(*test, value) {
                        applied.push(*test);
                        applied.extend(then);
                    } else {
                        applied.extend(otherwise);
                    }
                }
                Applicator::DependentSchema(key, id) if map.contains_key(key) => applied.push(*id),
                Applicator::DependentSchema(..) => {}
            }
        }
        for id in applied {
            self.collect_evaluated(id, false, (value, map), evaluated);
        }
    }
}

/// The absent property that an unknown name is most similar to.
fn similar_property<'r>(rules: &'r ObjectRules, map: &Map<String, Value>, name: &str) -> Option<&'r str> {
    let names = rules.properties.iter().map(|property| property.name.as_str());
    nearest(name, names.filter(|known| !map.contains_key(*known)))
}

fn unknown_name(name: &str, similar: Option<&str>, depth: usize) -> String {
    let noun = if depth == 0 { "argument" } else { "field" };
    // names come from clients and may be as long as the message
    let name: String = name.chars().take(60).collect();
    match similar {
        Some(similar) => format!("unknown {noun} `{name}`; did you mean `{similar}`?"),
        None => format!("unknown {noun} `{name}`"),
    }
}
