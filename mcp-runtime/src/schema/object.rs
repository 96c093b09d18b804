//! The keywords of objects, and the names in them that nobody knows.
//!
//! `check` calls this for every object.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::{MOST, Run};
use super::node::{Applied, Id, ObjectRules};
use super::suggest;
use super::violation::{Path, Violation};

impl Run<'_> {
    pub(super) fn object(
        &mut self,
        rules: &ObjectRules,
        map: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) -> bool {
        let mut fits = self.counted(map.len(), rules.least, rules.most, "property", path);
        for property in &rules.properties {
            if self.quiet && !fits {
                return false;
            }
            let child = Path::Key(path, &property.name);
            match map.get(&property.name) {
                Some(Value::Null) if self.null_is_absent && !property.required => {}
                Some(value) => fits &= self.check(property.schema, value, &child, depth + 1),
                None if property.required => fits = self.fail_missing(Some(property.schema), &child),
                None => {}
            }
        }
        for name in &rules.required {
            if !map.contains_key(name) {
                fits = self.fail_missing(None, &Path::Key(path, name));
            }
        }
        for (name, needed) in rules.dependent.iter().filter(|(name, _)| map.contains_key(name)) {
            for other in needed.iter().filter(|other| !map.contains_key(*other)) {
                fits = self.fail(&Path::Key(path, other), || {
                    let message = format!("is missing (required by `{name}`)");
                    ("a value".to_owned(), "nothing".to_owned(), message)
                });
            }
        }
        if self.quiet && !fits {
            return false;
        }
        fits & self.other_names(rules, map, path, depth)
    }

    /// Checks what applies to names by pattern, to all names, and to names that are no property.
    fn other_names(
        &mut self,
        rules: &ObjectRules,
        map: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) -> bool {
        let simple = rules.patterns.is_empty() && rules.names.is_none();
        if simple && rules.additional.is_none() && (self.quiet || rules.properties.is_empty()) {
            return true;
        }
        let mut fits = true;
        for (name, value) in map {
            if self.quiet && !fits {
                return false;
            }
            let child = Path::Key(path, name);
            if let Some(names) = rules.names {
                let key = Value::from(name.as_str());
                let allowed = self.probe(names, &key, &child, depth + 1);
                if !allowed {
                    fits = self.fail(path, || {
                        let message = format!("`{name}` is not an allowed name here");
                        ("another name".to_owned(), format!("`{name}`"), message)
                    });
                }
            }
            let mut known = rules.property(name).is_some();
            for (pattern, schema) in &rules.patterns {
                if pattern.is_match(name) {
                    known = true;
                    fits &= self.check(*schema, value, &child, depth + 1);
                }
            }
            match rules.additional {
                _ if known => {}
                Some(schema) => fits &= self.additional(schema, rules, map, (name, value), path, depth),
                None if !self.quiet && rules.unevaluated.is_none() => {
                    self.hint(rules, map, name, path, depth);
                }
                None => {}
            }
        }
        fits
    }

    fn additional(
        &mut self,
        schema: Id,
        rules: &ObjectRules,
        map: &Map<String, Value>,
        (name, value): (&str, &Value),
        path: &Path<'_>,
        depth: usize,
    ) -> bool {
        if !self.nodes.get(schema).is_some_and(|node| node.never) {
            return self.check(schema, value, &Path::Key(path, name), depth + 1);
        }
        self.fail(path, || {
            let (expected, message) = match meant(rules, map, name) {
                Some(near) => (format!("`{near}`"), unknown(name, Some(near), depth)),
                None => ("a known name".to_owned(), unknown(name, None, depth)),
            };
            (expected, format!("`{name}`"), message)
        })
    }

    /// Notes an unknown name that is allowed but was probably meant to be another.
    fn hint(
        &mut self,
        rules: &ObjectRules,
        map: &Map<String, Value>,
        name: &str,
        path: &Path<'_>,
        depth: usize,
    ) {
        self.compared += 1;
        if self.compared > MOST {
            return;
        }
        if let Some(near) = meant(rules, map, name) {
            let message = unknown(name, Some(near), depth);
            self.hints.push(Violation::new(path, format!("`{near}`"), format!("`{name}`"), message));
        }
    }

    pub(super) fn fail_missing(&mut self, schema: Option<Id>, path: &Path<'_>) -> bool {
        if self.quiet {
            return false;
        }
        let expected = schema.map_or_else(|| "a value".to_owned(), |schema| self.describe(schema));
        self.fail(path, || {
            let message = format!("is missing ({expected})");
            (expected, "nothing".to_owned(), message)
        })
    }

    /// `unevaluatedProperties`: checks the names that nothing else in the schema looked at.
    pub(super) fn unevaluated(
        &mut self,
        id: Id,
        schema: Id,
        value: &Value,
        map: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) -> bool {
        let mut seen = HashSet::new();
        self.evaluated(id, true, (value, map), path, depth, &mut seen);
        let none = ObjectRules::default();
        let mut fits = true;
        for (name, member) in map.iter().filter(|(name, _)| !seen.contains(name.as_str())) {
            fits &= self.additional(schema, &none, map, (name, member), path, depth);
        }
        fits
    }

    fn evaluated<'v>(
        &mut self,
        id: Id,
        outermost: bool,
        (value, map): (&'v Value, &'v Map<String, Value>),
        path: &Path<'_>,
        depth: usize,
        seen: &mut HashSet<&'v str>,
    ) {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id) else { return };
        if let Some(rules) = &node.object {
            let all = rules.additional.is_some() || (!outermost && rules.unevaluated.is_some());
            let by_pattern = |name: &str| rules.patterns.iter().any(|(pattern, _)| pattern.is_match(name));
            let names = map.keys().map(String::as_str);
            seen.extend(names.filter(|name| all || rules.property(name).is_some() || by_pattern(name)));
        }
        let mut next: Vec<Id> = Vec::new();
        for applied in &node.applied {
            match applied {
                Applied::Ref(id) => next.push(*id),
                Applied::AllOf(ids) => next.extend(ids),
                Applied::AnyOf(ids) | Applied::OneOf(ids) => {
                    next.extend(ids.iter().filter(|id| self.probe(**id, value, path, depth)));
                }
                Applied::Not(_) => {}
                Applied::If { test, then, otherwise } => {
                    if self.probe(*test, value, path, depth) {
                        next.push(*test);
                        next.extend(then);
                    } else {
                        next.extend(otherwise);
                    }
                }
                Applied::IfKey(key, id) if map.contains_key(key) => next.push(*id),
                Applied::IfKey(..) => {}
            }
        }
        for id in next {
            self.evaluated(id, false, (value, map), path, depth, seen);
        }
    }
}

/// The property that an unknown name was probably meant to be: one that is not there under its own name.
fn meant<'r>(rules: &'r ObjectRules, map: &Map<String, Value>, name: &str) -> Option<&'r str> {
    let absent = rules.properties.iter().map(|property| property.name.as_str());
    suggest::nearest(name, absent.filter(|known| !map.contains_key(*known)))
}

fn unknown(name: &str, near: Option<&str>, depth: usize) -> String {
    let noun = if depth == 0 { "argument" } else { "field" };
    // Names come from clients, and need be no shorter than the message limit.
    let shown: String = name.chars().take(60).collect();
    match near {
        Some(near) => format!("unknown {noun} `{shown}`; did you mean `{near}`?"),
        None => format!("unknown {noun} `{shown}`"),
    }
}
