//! Says which of several allowed forms a value was meant to have, and what it lacks.
//!
//! `check` calls this when no alternative of `anyOf` or `oneOf` fits.

use serde_json::Value;

use super::check::{Run, describe_choices, say_choices};
use super::node::{Applied, Choices, Id, Node, ObjectRules, Types};
use super::violation::{Path, shortened};

impl<'n> Run<'n> {
    /// Reports why none of the alternatives fits, inside the one that was meant if that can be told.
    pub(super) fn explain(&mut self, ids: &[Id], value: &Value, path: &Path<'_>, depth: usize) -> bool {
        if self.quiet {
            return false;
        }
        let forms: Vec<Id> =
            ids.iter().copied().filter(|id| !self.target(*id).is_some_and(Node::is_null)).collect();
        if let [one] = forms.as_slice() {
            return self.check(*one, value, path, depth);
        }
        let mut meant: Vec<Id> =
            forms.iter().copied().filter(|id| self.types_of(*id).contains(Types::of(value))).collect();
        if value.is_object() {
            if let Some(tag) = self.tag(&meant) {
                let choices: Vec<&Value> =
                    meant.iter().filter_map(|id| self.choices_at(*id, tag)).flat_map(|c| &c.values).collect();
                let Some(found) = value.get(tag) else {
                    let expected = describe_choices(&choices, false);
                    return self.fail(&Path::Key(path, tag), || {
                        let message = format!("is missing ({expected})");
                        (expected, "nothing".to_owned(), message)
                    });
                };
                meant.retain(|id| {
                    self.choices_at(*id, tag).is_some_and(|choices| choices.values.contains(found))
                });
                if meant.is_empty() {
                    return self.fail(&Path::Key(path, tag), || say_choices(&choices, false, found));
                }
            } else {
                // Externally tagged variants have their tag for a key.
                let has_all = |rules: &ObjectRules| {
                    rules
                        .properties
                        .iter()
                        .filter(|one| one.required)
                        .all(|one| value.get(&one.name).is_some())
                };
                let present: Vec<Id> =
                    meant.iter().copied().filter(|id| self.shape(*id).is_some_and(has_all)).collect();
                if present.len() == 1 {
                    meant = present;
                }
            }
        }
        if let [one] = meant.as_slice() {
            return self.check(*one, value, path, depth);
        }
        self.fail_all(if meant.is_empty() { &forms } else { &meant }, meant.is_empty(), value, path)
    }

    fn fail_all(&mut self, forms: &[Id], none_of_type: bool, value: &Value, path: &Path<'_>) -> bool {
        let choices: Option<Vec<&Choices>> =
            forms.iter().map(|id| self.target(*id).and_then(|node| node.choices.as_ref())).collect();
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            let values: Vec<&Value> = choices.into_iter().flat_map(|choices| &choices.values).collect();
            return self.fail(path, || say_choices(&values, false, value));
        }
        let shown = shortened(value);
        let types = forms.iter().fold(Types::NONE, |types, id| types.union(self.types_of(*id)));
        let alike = forms.iter().all(|id| self.types_of(*id) == types);
        if none_of_type && alike {
            let expected = types.describe();
            let message = format!("{shown} is not {expected}");
            return self.fail(path, || (expected, shown, message));
        }
        let mut words: Vec<String> = Vec::new();
        for id in forms {
            let word = self.describe(*id);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let expected = words.join("; ");
        let message = format!("{shown} fits none of: {expected}");
        self.fail(path, || (expected, shown, message))
    }

    /// What a value of a node would be, as in `an integer` or `one of "a", "b"`.
    pub(super) fn describe(&self, id: Id) -> String {
        self.describe_within(id, 4)
    }

    fn describe_within(&self, id: Id, levels: usize) -> String {
        let Some(node) = self.target(id).filter(|_| levels > 0) else { return "a value".to_owned() };
        if let Some(choices) = &node.choices {
            return describe_choices(&choices.values.iter().collect::<Vec<_>>(), choices.is_const);
        }
        let required = |rules: &ObjectRules| {
            let names = rules.properties.iter().filter(|one| one.required).map(|one| one.name.as_str());
            names
                .chain(rules.required.iter().map(String::as_str))
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
        };
        if let Some(names) =
            node.object.as_ref().map(|rules| required(rules)).filter(|names| !names.is_empty())
            && node.types.is_none_or(|types| types == Types::OBJECT)
        {
            return format!("an object with {}", names.join(", "));
        }
        if let Some(types) = node.types {
            return types.describe();
        }
        for applied in &node.applied {
            if let Applied::AnyOf(ids) | Applied::OneOf(ids) = applied {
                let mut words: Vec<String> = Vec::new();
                for id in ids {
                    let word = self.describe_within(*id, levels - 1);
                    if !words.contains(&word) {
                        words.push(word);
                    }
                }
                return words.join(" or ");
            }
        }
        "a value".to_owned()
    }

    /// The node itself, or what it refers to if it is nothing but a reference.
    fn target(&self, id: Id) -> Option<&'n Node> {
        let mut node = self.nodes.get(id)?;
        // Reference cycles were refused when the schema was compiled.
        while let ([Applied::Ref(next)], true) = (node.applied.as_slice(), node.is_unconstrained()) {
            node = self.nodes.get(*next)?;
        }
        Some(node)
    }

    fn shape(&self, id: Id) -> Option<&'n ObjectRules> {
        self.target(id).and_then(|node| node.object.as_deref())
    }

    fn types_of(&self, id: Id) -> Types {
        let Some(node) = self.target(id) else { return Types::ANY };
        let chosen = node.choices.as_ref().map_or(Types::ANY, |choices| {
            choices.values.iter().fold(Types::NONE, |types, value| types.union(Types::of(value)))
        });
        node.types.unwrap_or(Types::ANY).intersection(chosen)
    }

    /// The required property that has fixed values in each of several object forms.
    fn tag(&self, ids: &[Id]) -> Option<&'n str> {
        let (first, rest) = ids.split_first()?;
        let candidates = self.shape(*first)?.properties.iter().filter(|one| one.required);
        let mut names = candidates.map(|one| one.name.as_str());
        names.find(|name| {
            !rest.is_empty()
                && self.choices_at(*first, name).is_some()
                && rest.iter().all(|id| self.choices_at(*id, name).is_some())
        })
    }

    fn choices_at(&self, id: Id, name: &str) -> Option<&'n Choices> {
        let (_, property) = self.shape(id)?.property(name)?;
        self.target(property.schema).filter(|_| property.required)?.choices.as_ref()
    }
}
