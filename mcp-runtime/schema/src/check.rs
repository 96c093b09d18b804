//! Checks a value against a compiled schema, either up to the first error or to collect all errors.

use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use serde_json::{Number, Value};

use super::alternatives::{not_null, tells_variant};
use super::error::{Mismatch, PathStep, ValidationError, path_text, quote, summarize, truncate};
use super::node::{
    Applicator, ArrayRules, Choices, Contains, NodeId, NumberRules, SchemaNode, StringRules, TypeSet,
};
use super::number;
use super::suggest::nearest;
use super::value_hash::{first_duplicate, hash_steps};

/// The deepest nesting of a value; `serde_json` does not read deeper values either.
pub(super) const MAX_DEPTH: usize = 128;

/// How many keywords that apply schemas to the same value are followed within each other, over all levels of a value.
const MAX_APPLICATIONS: usize = 512;

/// The longest name, in bytes, that is matched against patterns.
pub(super) const MAX_PATTERN_NAME: usize = 1 << 16;

/// The most errors that are reported, and the most unknown names that are compared with known ones: a value may have a
/// million of either.
pub(super) const MAX_ERRORS: usize = 100;

/// More names than this are compared with one value of a report.
const MANY_NAMES: usize = 100;

/// After this many steps, the result of each is kept.
const MANY_STEPS: usize = 500;

/// Whether a value is an array or an object with another in it.
pub(super) fn holds_containers(value: &Value) -> bool {
    let is_container = |value: &Value| matches!(value, Value::Array(_) | Value::Object(_));
    match value {
        Value::Array(items) => items.iter().any(is_container),
        Value::Object(members) => members.values().any(is_container),
        _ => false,
    }
}

/// Hashes indices and addresses, which clients do not choose.
pub(super) type AddressHasher = BuildHasherDefault<MixedAddress>;

/// The state of an [`AddressHasher`].
#[derive(Default)]
pub(super) struct MixedAddress(u64);

impl Hasher for MixedAddress {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// The validation of one value.
pub(super) struct Validation<'a> {
    pub(super) nodes: &'a [SchemaNode],
    pub(super) null_is_absent: bool,
    /// Whether `format` is an assertion.
    pub(super) check_formats: bool,
    /// Whether the `format` of numbers is.
    pub(super) check_integers: bool,
    /// Whether a value must also be decoded without a second try: by the first alternative of its type, and with scalars that
    /// no type refuses.
    pub(super) reads_once: bool,
    /// Stop at the first error, and record none.
    pub(super) fail_fast: bool,
    /// The steps from the root to the present value.
    pub(super) path: Vec<PathStep<'a>>,
    /// How many keywords have led from the root to the present schema without a step of the value.
    applications: usize,
    /// How many more steps the check may take: a value of a node, and each choice, name or pattern that it is compared with.
    pub(super) steps_left: usize,
    /// How many arrays and objects with others in them have been checked against nodes that are shared.
    steps: usize,
    /// Results by node and address of the value, once there were many steps: a value inside of alternatives, or of several
    /// keywords that apply to it, is reached along exponentially many paths, and must be checked once.
    results: HashMap<(NodeId, *const Value), bool, AddressHasher>,
    errors: Vec<ValidationError>,
    /// Unknown names that are similar to known ones: reported only along with other errors.
    pub(super) hints: Vec<ValidationError>,
    /// The number of unknown names that were compared with known ones.
    pub(super) compared_names: usize,
}

impl<'a> Validation<'a> {
    pub(super) fn new(nodes: &'a [SchemaNode], null_is_absent: bool) -> Self {
        Self {
            nodes,
            null_is_absent,
            check_formats: false,
            check_integers: false,
            reads_once: false,
            fail_fast: true,
            path: Vec::new(),
            applications: 0,
            steps_left: usize::MAX,
            steps: 0,
            results: HashMap::default(),
            errors: Vec::new(),
            hints: Vec::new(),
            compared_names: 0,
        }
    }

    /// Whether the value conforms to the root schema.
    pub(super) fn is_valid(&mut self, value: &'a Value) -> bool {
        self.fail_fast = true;
        // without steps, `not` accepts what it has not looked at
        self.check(0, value) && self.steps_left > 0
    }

    /// All distinct errors of a value of this node, then the hints; none if the value conforms.
    pub(super) fn errors_at(self, id: NodeId, value: &'a Value) -> Vec<ValidationError> {
        self.errors_and_steps(id, value).0
    }

    /// As [`errors_at`](Self::errors_at), with the steps that are left.
    pub(super) fn errors_and_steps(mut self, id: NodeId, value: &'a Value) -> (Vec<ValidationError>, usize) {
        self.fail_fast = false;
        let conforms = self.check(id, value);
        if self.steps_left == 0 {
            let mismatch = Mismatch::new("a smaller value", "takes too many steps to check".to_owned());
            return (vec![ValidationError::new(String::new(), mismatch)], 0);
        }
        if conforms {
            return (Vec::new(), self.steps_left);
        }
        let is_cut = self.errors.len() == MAX_ERRORS;
        let mut distinct: Vec<ValidationError> = Vec::with_capacity(self.errors.len());
        for error in self.errors.into_iter().chain(self.hints) {
            if !distinct.contains(&error) {
                distinct.push(error);
            }
        }
        if is_cut {
            let mismatch = Mismatch::new("", format!("only the first {MAX_ERRORS} errors are listed"));
            distinct.push(ValidationError::new(String::new(), mismatch));
        }
        (distinct, self.steps_left)
    }

    /// Whether a value conforms to a node; records no errors.
    pub(super) fn matches(&mut self, id: NodeId, value: &'a Value) -> bool {
        let fail_fast = std::mem::replace(&mut self.fail_fast, true);
        let result = self.check(id, value);
        self.fail_fast = fail_fast;
        result
    }

    /// How many arrays and objects with others in them have been checked against nodes that are shared.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Takes some of the steps that are left; returns whether there are more.
    pub(super) fn takes_steps(&mut self, count: usize) -> bool {
        self.steps_left = self.steps_left.saturating_sub(count);
        self.steps_left > 0
    }

    /// Whether an error is to suggest the most similar of some names: of many, only the first one does.
    pub(super) fn suggests(&self, names: usize) -> bool {
        names <= MANY_NAMES || self.errors.is_empty()
    }

    /// Whether no further errors are collected; a value may have a million of them.
    pub(super) fn is_report_full(&self) -> bool {
        !self.fail_fast && self.errors.len() == MAX_ERRORS
    }

    /// Records an error unless in fail-fast mode; always returns false, as the result of the check.
    pub(super) fn fail(&mut self, mismatch: impl FnOnce() -> Mismatch) -> bool {
        if !self.fail_fast && self.errors.len() < MAX_ERRORS {
            self.errors.push(ValidationError::new(path_text(&self.path), mismatch()));
        }
        false
    }

    /// Says of the last error, that of an empty text, that nothing need be sent.
    pub(super) fn advise_absence(&mut self) {
        if !self.fail_fast
            && !self.is_report_full()
            && let Some(error) = self.errors.last_mut()
        {
            error.message.push_str("; leave it out to send none");
        }
    }

    /// As [`fail`](Self::fail), at a member.
    pub(super) fn fail_at(&mut self, name: &'a str, mismatch: impl FnOnce() -> Mismatch) -> bool {
        self.path.push(PathStep::Key(name));
        self.fail(mismatch);
        self.path.pop();
        false
    }

    /// Records the mismatch of a rule that is broken; returns whether none is.
    pub(super) fn fail_if(&mut self, broken: Option<impl FnOnce() -> Mismatch>) -> bool {
        broken.is_none_or(|mismatch| self.fail(mismatch))
    }

    /// Checks a member or an item against a node.
    pub(super) fn check_at(&mut self, step: PathStep<'a>, id: NodeId, value: &'a Value) -> bool {
        self.path.push(step);
        let result = self.check(id, value);
        self.path.pop();
        result
    }

    /// Checks a value against a node.
    pub(super) fn check(&mut self, id: NodeId, value: &'a Value) -> bool {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id) else { return true };
        let own = TypeSet::of(value);
        if self.reads_once && may_be_refused(node, value) {
            return false;
        }
        if node.accepts.contains(own) {
            return true;
        }
        if self.fail_fast && node.refuses.contains(own) {
            return false;
        }
        if !self.takes_steps(1 + cheap_steps(node, value) / 8) || self.is_report_full() {
            return false;
        }
        if self.path.len() > MAX_DEPTH {
            return self.fail_depth();
        }
        if node.never {
            return self.fail(|| Mismatch::new("nothing", format!("{} is not allowed", summarize(value))));
        }
        // further errors of a value of the wrong type, or outside the choices, would be noise
        if let Some(choices) = &node.choices
            && !choices.contains(value)
        {
            let suggests = self.suggests(choices.values.len());
            return self.fail(|| choices.mismatch(value, suggests));
        }
        if let Some(types) = node.types
            && !types.contains(own)
        {
            let is_of_bytes = value.is_string() && self.is_array_of_bytes(node);
            return self
                .fail(|| if is_of_bytes { bytes_mismatch(value) } else { type_mismatch(types, value) });
        }
        // others are reached through a node and a value whose result is kept
        if !node.is_shared || !holds_containers(value) {
            return self.check_keywords(id, node, value);
        }
        self.steps += 1;
        if self.steps < MANY_STEPS {
            return self.check_keywords(id, node, value);
        }
        let key = (id, std::ptr::from_ref(value));
        match self.results.get(&key).copied() {
            Some(true) => return true,
            Some(false) if self.fail_fast => return false,
            Some(false) => {}
            // no error of it is collected twice
            None if !self.fail_fast && self.matches(id, value) => return true,
            None => {}
        }
        let result = self.check_keywords(id, node, value);
        self.results.insert(key, result);
        result
    }

    fn fail_depth(&mut self) -> bool {
        self.fail(|| {
            Mismatch::new(
                format!("at most {MAX_DEPTH} levels"),
                format!("is nested deeper than {MAX_DEPTH} levels"),
            )
        })
    }

    /// Checks a value of an allowed type against the keywords of a node.
    fn check_keywords(&mut self, id: NodeId, node: &'a SchemaNode, value: &'a Value) -> bool {
        let matches_rules = match value {
            Value::Number(number) => {
                node.number.as_ref().is_none_or(|rules| self.check_number(rules, number))
            }
            Value::String(text) => node.string.as_ref().is_none_or(|rules| self.check_string(rules, text)),
            Value::Array(items) => node.array.as_ref().is_none_or(|rules| self.check_array(rules, items)),
            Value::Object(map) => node.object.as_ref().is_none_or(|rules| self.check_object(rules, map)),
            Value::Null | Value::Bool(_) => true,
        };
        if self.fail_fast && !matches_rules {
            return false;
        }
        let mut matches_applicators = true;
        for applicator in &node.applicators {
            matches_applicators &= self.check_applicator(applicator, value);
            if self.fail_fast && !matches_applicators {
                return false;
            }
        }
        // which members are evaluated is known only then
        let matches_unevaluated = match value {
            Value::Object(map) if matches_applicators => {
                let unevaluated = node.object.as_ref().and_then(|rules| rules.unevaluated_properties);
                unevaluated.is_none_or(|schema| self.check_unevaluated(id, schema, value, map))
            }
            _ => true,
        };
        matches_rules && matches_applicators && matches_unevaluated
    }

    fn check_applicator(&mut self, applicator: &'a Applicator, value: &'a Value) -> bool {
        if self.applications == MAX_APPLICATIONS {
            return self.fail_depth();
        }
        if !self.takes_steps(applicator.steps(value) / 8) {
            return false;
        }
        self.applications += 1;
        let result = self.applies(applicator, value);
        self.applications -= 1;
        result
    }

    fn applies(&mut self, applicator: &'a Applicator, value: &'a Value) -> bool {
        match applicator {
            Applicator::Ref(id) => self.check(*id, value),
            Applicator::AllOf(ids) => ids.iter().fold(true, |all, id| {
                if self.fail_fast && !all { false } else { self.check(*id, value) && all }
            }),
            Applicator::AnyOf(of) | Applicator::OneOf(of) if self.reads_once => {
                let is_first =
                    holds_containers(value) && !tells_variant(self.nodes, &not_null(self.nodes, &of.ids));
                let may_accept = |id: &&NodeId| {
                    self.nodes.get(**id).is_some_and(|node| !node.refuses.contains(TypeSet::of(value)))
                };
                let tried = if is_first { 1 } else { of.ids.len() };
                let tried: Vec<NodeId> = of.ids.iter().filter(may_accept).take(tried).copied().collect();
                tried.into_iter().any(|id| self.matches(id, value))
            }
            Applicator::AnyOf(of) | Applicator::OneOf(of) if of.choices.is_some() => {
                let is_choice = of.choices.as_ref().is_some_and(|choices| choices.contains(value));
                match &of.choices {
                    _ if is_choice => true,
                    Some(choices) if choices.values.len() > MANY_NAMES => {
                        let suggests = self.suggests(choices.values.len());
                        self.fail(|| choices.mismatch(value, suggests))
                    }
                    _ => self.fail_alternatives(of, value),
                }
            }
            Applicator::AnyOf(of) => {
                of.ids.iter().any(|id| self.matches(*id, value)) || self.fail_alternatives(of, value)
            }
            Applicator::OneOf(of) => {
                let mut matching = 0;
                for id in &of.ids {
                    matching += usize::from(self.matches(*id, value));
                    if matching > 1 {
                        break;
                    }
                }
                match matching {
                    0 => self.fail_alternatives(of, value),
                    1 => true,
                    _ => self.fail(|| {
                        let message =
                            format!("{} matches more than one of the allowed forms", summarize(value));
                        Mismatch::new("exactly one of the allowed forms", message)
                    }),
                }
            }
            Applicator::Not(id) => {
                let mismatch =
                    || Mismatch::new("another value", format!("{} is not allowed", summarize(value)));
                !self.matches(*id, value) || self.fail(mismatch)
            }
            Applicator::If { test, then, otherwise } => {
                let branch = if self.matches(*test, value) { then } else { otherwise };
                branch.is_none_or(|id| self.check(id, value))
            }
            Applicator::DependentSchema(key, id) => value.get(key).is_none() || self.check(*id, value),
        }
    }

    fn check_number(&mut self, rules: &NumberRules, number: &Number) -> bool {
        let integer = rules.integer.filter(|integer| self.check_integers && !integer.holds(number));
        self.fail_if(rules.broken(number))
            && integer.is_none_or(|integer| self.fail(|| Mismatch::of_integer(number, integer)))
    }

    fn check_string(&mut self, rules: &StringRules, text: &str) -> bool {
        if let Some(mismatch) = rules.broken_length(text) {
            return self.fail(mismatch);
        }
        let of_pattern = rules.pattern.as_ref().map_or(0, |pattern| pattern.steps(text));
        if !self.takes_steps(text.len() / 64 + of_pattern) {
            return false;
        }
        if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            return self.fail(|| {
                let message = format!("{} does not match the pattern `{}`", quote(text), pattern.as_str());
                Mismatch::new(format!("a string matching `{}`", pattern.as_str()), message)
            });
        }
        let format = rules.format.filter(|_| self.check_formats);
        format.and_then(|format| format.mismatch(text)).is_none_or(|mismatch| self.fail(|| mismatch))
    }

    /// Whether a node takes arrays of integers that are bytes, for which models send base64.
    fn is_array_of_bytes(&self, node: &SchemaNode) -> bool {
        let item = node.array.as_ref().and_then(|rules| rules.items).and_then(|id| self.nodes.get(id));
        let bound = |bound: &Option<Number>, at: u64| bound.as_ref().and_then(Number::as_u64) == Some(at);
        item.is_some_and(|item| {
            item.types == Some(TypeSet::INTEGER)
                && item
                    .number
                    .as_ref()
                    .is_some_and(|rules| bound(&rules.minimum, 0) && bound(&rules.maximum, 255))
        })
    }

    fn check_array(&mut self, rules: &ArrayRules, items: &'a [Value]) -> bool {
        let mut is_valid = self.fail_if(broken_count(items.len(), rules.min, rules.max, "item"));
        let has_wrong_length = !is_valid;
        if self.fail_fast && !is_valid {
            return false;
        }
        // no more is looked for in a list of the wrong length
        let compares = rules.unique_items && is_valid;
        if compares && !self.takes_steps(items.iter().map(hash_steps).sum()) {
            return false;
        }
        if compares && let Some((first, second)) = first_duplicate(items) {
            is_valid = self
                .fail(|| Mismatch::new("items that differ", format!("items {first} and {second} are equal")));
        }
        for (index, item) in items.iter().enumerate() {
            if self.fail_fast && !is_valid {
                return false;
            }
            if let Some(schema) = rules.prefix_items.get(index).copied().or(rules.items) {
                is_valid &= self.check_at(PathStep::Index(index), schema, item);
            }
        }
        if let Some(contains) = rules.contains.as_ref().filter(|_| !has_wrong_length) {
            let fail_fast = std::mem::replace(&mut self.fail_fast, true);
            let mut count: u64 = 0;
            for (index, item) in items.iter().enumerate() {
                count += u64::from(self.check_at(PathStep::Index(index), contains.schema, item));
                if contains.max.is_none() && count >= contains.min {
                    break;
                }
            }
            self.fail_fast = fail_fast;
            if count < contains.min || contains.max.is_some_and(|max| count > max) {
                is_valid = self.fail_contains(contains, count);
            }
        }
        is_valid
    }

    fn fail_contains(&mut self, contains: &Contains, count: u64) -> bool {
        let item = self.describe(contains.schema);
        let (bound, limit) = match contains.max {
            Some(max) if count > max => ("more than the maximum", max),
            _ => ("fewer than the minimum", contains.min),
        };
        self.fail(|| {
            let message = format!("has {count} items that are {item}, {bound} of {limit}");
            Mismatch::new(format!("items that are {item}"), message)
        })
    }
}

/// How many choices a value is compared with, and how many parts of it are looked at to find out whether its result is kept.
fn cheap_steps(node: &SchemaNode, value: &Value) -> usize {
    let parts = match value {
        Value::Array(items) if node.is_shared => items.len(),
        Value::Object(members) if node.is_shared => members.len(),
        _ => 0,
    };
    node.choices.as_ref().map_or(parts, |choices| parts + choices.steps(value))
}

/// Whether a type may refuse a scalar that its schema accepts: a text that it parses, or an integer that is written as a float
/// or not one of every type.
fn may_be_refused(node: &SchemaNode, value: &Value) -> bool {
    match value {
        Value::String(_) => node.string.is_some() || node.has_format,
        Value::Number(number) => {
            let is_of_every_type = number.as_i64().is_some_and(|number| (-128..128).contains(&number));
            !is_of_every_type && node.types.is_some_and(|types| !types.contains(TypeSet::NUMBER))
        }
        _ => false,
    }
}

/// The mismatch of an object with a name that is too long to be matched.
pub(super) fn long_name_mismatch(name: &str) -> Mismatch {
    let most = format!("at most {MAX_PATTERN_NAME} bytes");
    let message = format!("a name has {} bytes, and may have {most}", name.len());
    Mismatch::new(most, message)
}

/// The mismatch of a text that is sent for bytes.
fn bytes_mismatch(value: &Value) -> Mismatch {
    let expected = "an array of bytes";
    let message = format!(
        "{} is not {expected}: each is an integer from 0 to 255, and base64 is not decoded",
        summarize(value)
    );
    Mismatch::new(expected, message)
}

/// The mismatch of a value of the wrong type.
pub(super) fn type_mismatch(types: TypeSet, value: &Value) -> Mismatch {
    let expected = types.describe();
    let message = format!("{} is not {expected}", summarize(value));
    Mismatch::new(expected, message)
}

impl Choices {
    /// Whether a text is near one of the choices.
    pub(super) fn has_near(&self, value: &Value) -> bool {
        let names = self.values.iter().filter_map(|choice| choice.as_str());
        value.as_str().is_some_and(|text| nearest(text, names).is_some())
    }

    /// The mismatch of a value that is not one of the choices.
    fn mismatch(&self, value: &Value, suggests: bool) -> Mismatch {
        choice_mismatch(self.values.iter(), self.is_const, value, suggests)
    }
}

/// The mismatch of a value that is not one of the choices, which `suggests` the most similar one.
pub(super) fn choice_mismatch<'v>(
    choices: impl Iterator<Item = &'v Value> + Clone,
    is_const: bool,
    value: &Value,
    suggests: bool,
) -> Mismatch {
    let expected = describe_choices(choices.clone(), is_const);
    let mut message = format!("{} is not {expected}", summarize(value));
    let names = choices.filter_map(|choice| choice.as_str());
    if suggests
        && !is_const
        && let Some(text) = value.as_str()
        && let Some(suggestion) = nearest(text, names)
    {
        message.push_str(&format!("; did you mean {}?", Value::from(suggestion)));
    }
    Mismatch::new(expected, message)
}

/// The mismatch of an object whose only key names no variant.
pub(super) fn key_mismatch(key: &str, names: &[&str]) -> Mismatch {
    let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let expected = format!("an object with one of {}", listed.join(", "));
    let mut message = format!("the key `{}` is not one of {}", truncate(key), listed.join(", "));
    if let Some(suggestion) = nearest(key, names.iter().copied()) {
        message.push_str(&format!("; did you mean `{suggestion}`?"));
    }
    Mismatch::new(expected, message)
}

/// As in `one of "a", "b"`.
pub(super) fn describe_choices<'v>(mut choices: impl Iterator<Item = &'v Value>, is_const: bool) -> String {
    const MAX_CHOICES: usize = 30;
    let listed: Vec<String> = choices.by_ref().take(MAX_CHOICES).map(summarize).collect();
    let mut list = listed.join(", ");
    let others = choices.count();
    if others > 0 {
        list.push_str(&format!(" and {others} more"));
    }
    if is_const { list } else { format!("one of {list}") }
}

impl NumberRules {
    /// The mismatch of the first rule that a number breaks.
    pub(super) fn broken<'r>(&'r self, number: &'r Number) -> Option<impl FnOnce() -> Mismatch + 'r> {
        type Accepts = fn(Ordering) -> bool;
        let bounds: [(&Option<Number>, Accepts, &str, &str); 4] = [
            (&self.minimum, Ordering::is_ge, "at least", "is less than the minimum of"),
            (&self.maximum, Ordering::is_le, "at most", "is greater than the maximum of"),
            (&self.exclusive_minimum, Ordering::is_gt, "more than", "is not greater than"),
            (&self.exclusive_maximum, Ordering::is_lt, "less than", "is not less than"),
        ];
        let of_bounds = bounds.into_iter().find_map(|(bound, accepts, expected, message)| {
            let bound = bound.as_ref().filter(|bound| !accepts(number::compare(number, bound)))?;
            Some((expected, message, bound))
        });
        let broken = of_bounds.or_else(|| {
            let divisor =
                self.multiple_of.as_ref().filter(|divisor| !number::is_multiple(number, divisor))?;
            Some(("a multiple of", "is not a multiple of", divisor))
        });
        broken.map(|(expected, message, bound)| {
            move || Mismatch::new(format!("{expected} {bound}"), format!("{number} {message} {bound}"))
        })
    }
}

impl StringRules {
    /// The mismatch of the length of a string, which is looked at first: a pattern costs many times as much.
    fn broken_length<'r>(&self, text: &'r str) -> Option<impl FnOnce() -> Mismatch + use<'r>> {
        let is_bounded = self.min.is_some() || self.max.is_some();
        let length = if is_bounded { text.chars().count() } else { 0 };
        let broken = broken_count(length, self.min, self.max, "character")?;
        Some(move || {
            let Mismatch { expected, message, .. } = broken();
            Mismatch::new(expected, format!("{} {message}", quote(text)))
        })
    }
}

/// The mismatch of a number of items, properties or characters that is outside of its bounds.
pub(super) fn broken_count(
    count: usize,
    min: Option<u64>,
    max: Option<u64>,
    noun: &'static str,
) -> Option<impl FnOnce() -> Mismatch + use<>> {
    let exact = u64::try_from(count).unwrap_or(u64::MAX);
    let (bound, expected, message) = match (min, max) {
        (Some(min), _) if exact < min => (min, "at least", "fewer than the minimum of"),
        (_, Some(max)) if exact > max => (max, "at most", "more than the maximum of"),
        _ => return None,
    };
    Some(move || {
        let message = format!("has {}, {message} {bound}", pluralize(count, noun));
        Mismatch::new(format!("{expected} {bound} {noun}s"), message)
    })
}

fn pluralize(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "property") => format!("{count} properties"),
        _ => format!("{count} {noun}s"),
    }
}
