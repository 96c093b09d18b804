//! Walks a value along a compiled schema.
//!
//! `validate` runs it twice at most: silently, stopping at the first violation, and to report all of them.

use std::collections::HashMap;

use serde_json::{Number, Value};

use super::node::{Applied, ArrayRules, Choices, Id, Node, NumberRules, TextRules, Types};
use super::violation::{Path, Violation, shortened};
use super::{number, order, suggest};

/// How deep a value may be nested; `serde_json` reads no deeper either.
pub(super) const DEEPEST: usize = 128;

/// How many violations are reported, and how many unknown names are compared with known ones: a value may
/// have a million of either.
pub(super) const MOST: usize = 100;

/// What a violation says: what was expected, what was found, and the sentence.
pub(super) type Said = (String, String, String);

/// One validation of one value.
pub(super) struct Run<'n> {
    pub(super) nodes: &'n [Node],
    pub(super) null_is_absent: bool,
    /// Stop at the first violation and keep none.
    pub(super) quiet: bool,
    /// Answers for alternatives by node and address of the value, so that nested alternatives are tried once
    /// and not once for every way that leads to them.
    tried: HashMap<(Id, *const Value), bool>,
    found: Vec<Violation>,
    /// Unknown names near to known ones: said only if something else is wrong.
    pub(super) hints: Vec<Violation>,
    /// How many unknown names were compared with known ones.
    pub(super) compared: usize,
}

impl<'n> Run<'n> {
    pub(super) fn new(nodes: &'n [Node], null_is_absent: bool) -> Self {
        Self {
            nodes,
            null_is_absent,
            quiet: true,
            tried: HashMap::new(),
            found: Vec::new(),
            hints: Vec::new(),
            compared: 0,
        }
    }

    pub(super) fn conforms(&mut self, value: &Value) -> bool {
        self.quiet = true;
        self.check(0, value, &Path::Root, 0)
    }

    pub(super) fn report(mut self, value: &Value) -> Vec<Violation> {
        self.quiet = false;
        self.check(0, value, &Path::Root, 0);
        let cut = self.found.len() == MOST;
        let mut distinct: Vec<Violation> = Vec::with_capacity(self.found.len());
        for violation in self.found.into_iter().chain(self.hints) {
            if !distinct.contains(&violation) {
                distinct.push(violation);
            }
        }
        if cut {
            let message = format!("only the first {MOST} violations are listed");
            distinct.push(Violation::new(&Path::Root, String::new(), String::new(), message));
        }
        distinct
    }

    /// Whether a value conforms, reporting nothing.
    pub(super) fn probe(&mut self, id: Id, value: &Value, path: &Path<'_>, depth: usize) -> bool {
        let nested = matches!(value, Value::Array(_) | Value::Object(_));
        let key = (id, std::ptr::from_ref(value));
        if nested && let Some(answer) = self.tried.get(&key) {
            return *answer;
        }
        let before = std::mem::replace(&mut self.quiet, true);
        let answer = self.check(id, value, path, depth);
        self.quiet = before;
        if nested {
            self.tried.insert(key, answer);
        }
        answer
    }

    /// Records a violation, if they are being reported; always false, for use as the answer.
    pub(super) fn fail(&mut self, path: &Path<'_>, say: impl FnOnce() -> Said) -> bool {
        if !self.quiet && self.found.len() < MOST {
            let (expected, found, message) = say();
            self.found.push(Violation::new(path, expected, found, message));
        }
        false
    }

    /// Checks a value against a node.
    pub(super) fn check(&mut self, id: Id, value: &Value, path: &Path<'_>, depth: usize) -> bool {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id) else { return true };
        if node.is_any() {
            return true;
        }
        if depth > DEEPEST {
            return self.fail(path, || {
                let message = format!("is nested deeper than {DEEPEST} levels");
                (format!("at most {DEEPEST} levels"), "more".to_owned(), message)
            });
        }
        if node.never {
            return self.fail(path, || {
                let shown = shortened(value);
                ("nothing".to_owned(), shown.clone(), format!("{shown} is not allowed"))
            });
        }
        // After a wrong type or choice anything else that could be said is noise.
        if let Some(choices) = &node.choices
            && !choices.values.iter().any(|choice| order::equal(choice, value))
        {
            return self.fail(path, || choices.say(value));
        }
        if let Some(types) = node.types
            && !types.contains(Types::of(value))
        {
            return self.fail(path, || {
                let (expected, shown) = (types.describe(), shortened(value));
                (expected.clone(), shown.clone(), format!("{shown} is not {expected}"))
            });
        }
        let own = match value {
            Value::Number(number) => {
                node.number.as_ref().is_none_or(|rules| self.number(rules, number, path))
            }
            Value::String(text) => node.text.as_ref().is_none_or(|rules| self.text(rules, text, path)),
            Value::Array(items) => {
                node.array.as_ref().is_none_or(|rules| self.array(rules, items, path, depth))
            }
            Value::Object(map) => {
                node.object.as_ref().is_none_or(|rules| self.object(rules, map, path, depth))
            }
            Value::Null | Value::Bool(_) => true,
        };
        if self.quiet && !own {
            return false;
        }
        let mut applied = true;
        for one in &node.applied {
            applied &= self.apply(one, value, path, depth);
            if self.quiet && !applied {
                return false;
            }
        }
        let rest = match (value, node.object.as_ref().and_then(|rules| rules.unevaluated)) {
            (Value::Object(map), Some(schema)) => self.unevaluated(id, schema, value, map, path, depth),
            _ => true,
        };
        own && applied && rest
    }

    fn apply(&mut self, applied: &Applied, value: &Value, path: &Path<'_>, depth: usize) -> bool {
        match applied {
            Applied::Ref(id) => self.check(*id, value, path, depth),
            Applied::AllOf(ids) => ids.iter().fold(true, |all, id| {
                if self.quiet && !all { false } else { self.check(*id, value, path, depth) && all }
            }),
            Applied::AnyOf(ids) => {
                ids.iter().any(|id| self.probe(*id, value, path, depth))
                    || self.explain(ids, value, path, depth)
            }
            Applied::OneOf(ids) => {
                let mut fitting = 0;
                for id in ids {
                    fitting += usize::from(self.probe(*id, value, path, depth));
                    if fitting > 1 {
                        break;
                    }
                }
                match fitting {
                    0 => self.explain(ids, value, path, depth),
                    1 => true,
                    _ => self.fail(path, || {
                        let message = format!("{} fits more than one of the allowed forms", shortened(value));
                        ("exactly one of the allowed forms".to_owned(), shortened(value), message)
                    }),
                }
            }
            Applied::Not(id) => {
                !self.probe(*id, value, path, depth)
                    || self.fail(path, || {
                        let shown = shortened(value);
                        ("another value".to_owned(), shown.clone(), format!("{shown} is not allowed"))
                    })
            }
            Applied::If { test, then, otherwise } => {
                let branch = if self.probe(*test, value, path, depth) { then } else { otherwise };
                branch.is_none_or(|id| self.check(id, value, path, depth))
            }
            Applied::IfKey(key, id) => value.get(key).is_none() || self.check(*id, value, path, depth),
        }
    }

    fn number(&mut self, rules: &NumberRules, found: &Number, path: &Path<'_>) -> bool {
        let Some((expected, reason)) = rules.refuse(found) else { return true };
        self.fail(path, || (expected, found.to_string(), format!("{found} {reason}")))
    }

    fn text(&mut self, rules: &TextRules, text: &str, path: &Path<'_>) -> bool {
        let Some((expected, reason)) = rules.refuse(text) else { return true };
        self.fail(path, || {
            let shown = shortened(&Value::from(text));
            (expected, shown.clone(), format!("{shown} {reason}"))
        })
    }

    fn array(&mut self, rules: &ArrayRules, items: &[Value], path: &Path<'_>, depth: usize) -> bool {
        let mut fits = self.counted(items.len(), rules.least, rules.most, "item", path);
        if self.quiet && !fits {
            return false;
        }
        if rules.unique
            && let Some((first, second)) = order::duplicates(items)
        {
            fits = self.fail(path, || {
                let message = format!("items {first} and {second} are equal");
                ("items that differ".to_owned(), "equal items".to_owned(), message)
            });
        }
        for (index, item) in items.iter().enumerate() {
            if self.quiet && !fits {
                return false;
            }
            if let Some(schema) = rules.prefix.get(index).copied().or(rules.items) {
                fits &= self.check(schema, item, &Path::Index(path, index), depth + 1);
            }
        }
        if let Some(contains) = &rules.contains {
            let mut count: u64 = 0;
            for (index, item) in items.iter().enumerate() {
                count += u64::from(self.probe(contains.schema, item, &Path::Index(path, index), depth + 1));
            }
            let too_many = contains.most.is_some_and(|most| count > most);
            if count < contains.least || too_many {
                fits = self.fail_contains(contains, count, path);
            }
        }
        fits
    }

    fn fail_contains(&mut self, contains: &super::node::Contains, count: u64, path: &Path<'_>) -> bool {
        let wanted = self.describe(contains.schema);
        let (bound, limit) = match contains.most {
            Some(most) if count > most => ("more than the maximum", most),
            _ => ("fewer than the minimum", contains.least),
        };
        self.fail(path, || {
            let message = format!("has {count} items that are {wanted}, {bound} of {limit}");
            (format!("items that are {wanted}"), format!("{count} of them"), message)
        })
    }

    /// Checks a count of items or properties against its bounds.
    pub(super) fn counted(
        &mut self,
        count: usize,
        least: Option<u64>,
        most: Option<u64>,
        noun: &str,
        path: &Path<'_>,
    ) -> bool {
        let Some((expected, reason)) = out_of_bounds(count, least, most, noun) else { return true };
        self.fail(path, || (expected, plural(count, noun), reason))
    }
}

impl Choices {
    /// What to say of a value that is none of the choices.
    pub(super) fn say(&self, value: &Value) -> Said {
        say_choices(&self.values.iter().collect::<Vec<_>>(), self.is_const, value)
    }
}

/// What to say of a value that is none of several.
pub(super) fn say_choices(choices: &[&Value], is_const: bool, value: &Value) -> Said {
    let expected = describe_choices(choices, is_const);
    let shown = shortened(value);
    let mut message = format!("{shown} is not {expected}");
    let names = choices.iter().filter_map(|choice| choice.as_str());
    if !is_const
        && let Some(text) = value.as_str()
        && let Some(near) = suggest::nearest(text, names)
    {
        message.push_str(&format!("; did you mean {}?", Value::from(near)));
    }
    (expected, shown, message)
}

/// As in `one of "a", "b"`.
pub(super) fn describe_choices(choices: &[&Value], is_const: bool) -> String {
    const SHOWN: usize = 30;
    let mut list = choices.iter().take(SHOWN).map(|choice| shortened(choice)).collect::<Vec<_>>().join(", ");
    if choices.len() > SHOWN {
        list.push_str(&format!(" and {} more", choices.len() - SHOWN));
    }
    if is_const { list } else { format!("one of {list}") }
}

impl NumberRules {
    /// What a number that breaks a rule should have been, and which rule; none if it breaks none.
    pub(super) fn refuse(&self, found: &Number) -> Option<(String, String)> {
        let against = |bound: &Option<Number>| {
            bound.as_ref().map(|bound| (number::compare(found, bound), bound.clone()))
        };
        if let Some((order, bound)) = against(&self.minimum)
            && order.is_lt()
        {
            return Some((format!("at least {bound}"), format!("is less than the minimum of {bound}")));
        }
        if let Some((order, bound)) = against(&self.maximum)
            && order.is_gt()
        {
            return Some((format!("at most {bound}"), format!("is greater than the maximum of {bound}")));
        }
        if let Some((order, bound)) = against(&self.above)
            && order.is_le()
        {
            return Some((format!("more than {bound}"), format!("is not greater than {bound}")));
        }
        if let Some((order, bound)) = against(&self.below)
            && order.is_ge()
        {
            return Some((format!("less than {bound}"), format!("is not less than {bound}")));
        }
        let divisor = self.multiple_of.as_ref().filter(|divisor| !number::is_multiple(found, divisor))?;
        Some((format!("a multiple of {divisor}"), format!("is not a multiple of {divisor}")))
    }
}

impl TextRules {
    /// What a text that breaks a rule should have been, and which rule; none if it breaks none.
    pub(super) fn refuse(&self, text: &str) -> Option<(String, String)> {
        if self.least.is_some() || self.most.is_some() {
            let refused = out_of_bounds(text.chars().count(), self.least, self.most, "character");
            if refused.is_some() {
                return refused;
            }
        }
        let pattern = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text))?;
        Some((format!("a string matching `{pattern}`"), format!("does not match the pattern `{pattern}`")))
    }
}

/// What a count should have been, and what is wrong with it; none if it is within bounds.
pub(super) fn out_of_bounds(
    count: usize,
    least: Option<u64>,
    most: Option<u64>,
    noun: &str,
) -> Option<(String, String)> {
    let has = || format!("has {}", plural(count, noun));
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if let Some(least) = least.filter(|least| count < *least) {
        return Some((
            format!("at least {least} {noun}s"),
            format!("{}, fewer than the minimum of {least}", has()),
        ));
    }
    let most = most.filter(|most| count > *most)?;
    Some((format!("at most {most} {noun}s"), format!("{}, more than the maximum of {most}", has())))
}

fn plural(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "property") => format!("{count} properties"),
        _ => format!("{count} {noun}s"),
    }
}
