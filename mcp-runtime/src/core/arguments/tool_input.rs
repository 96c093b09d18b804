//! The input of a tool, compiled: the bounds of its arguments, the repair of harmless mistakes in them, and arguments without
//! a Rust type.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::{Map, Value, value::RawValue};

use super::report::{Report, unreadable_message};
use crate::{
    core::{error::Failure, tool::InputSchema},
    schema::{
        Attempts, ValidationError, Validator, consists_of_more_values, count_values, duplicate_keys,
        has_duplicate_keys, member_path, rewrite, sort_by,
    },
};

/// The most values of the arguments of one call, in objects and lists at any depth. To decode, check and repair a value costs
/// much more than its bytes: `{},` takes three. A text is one value, however long it is.
pub(crate) const MAX_VALUES: usize = 150_000;

/// The most steps that serde may take to decode the arguments of one call, in types whose values have several forms at several
/// depths, beside one for each byte.
pub(super) const MAX_ALTERNATIVES: usize = 100_000;

/// Whether JSON has more values than the arguments of one call may have.
pub(crate) fn has_too_many_values(arguments: &str) -> bool {
    // a value takes more than one byte
    arguments.len() > MAX_VALUES && consists_of_more_values(arguments, MAX_VALUES)
}

/// The message about values that would be read too often.
pub(super) const TOO_MANY_ATTEMPTS: &str = "too many values inside of each other, of which each may have several forms; send fewer at a time, or nest them less deeply";

/// The maximum number of values in small arguments that are repaired. All of them are built, and each takes hundreds of
/// bytes where its text takes two. The limit bounds the cost of a repair to a few times that of reading the request ..
const MAX_REPAIRED: usize = 4_000;

/// .. one more for each of this many bytes.
const BYTES_PER_REPAIRED: usize = 64;

/// Name and input schema of a tool, compiled.
#[derive(Debug)]
pub(crate) struct ToolInput {
    pub(crate) name: String,
    /// The noun for it in reports.
    pub(crate) noun: &'static str,
    /// The schema of arguments, by the names that clients see.
    pub(crate) schema: Value,
    /// The schema that clients see, if it differs.
    published: Option<Value>,
    /// Whether nothing of the schema is enforced, and the function gets the arguments as they were written.
    pub(crate) is_unchecked: bool,
    /// Whether some arguments are out of the reach of clients, so that reports are about the schema that they see.
    pub(super) has_hidden: bool,
    /// Checks all arguments, by the schema of what is accepted; `None` if that cannot be compiled, which then no keyword of it
    /// needs.
    validator: Option<Validator>,
    /// Of the published schema, if more is accepted: names that clients do not see are not suggested.
    published_validator: Option<Validator>,
    /// The arguments in which `null` is not the absence of an optional member; `None` if it never is.
    pub(crate) kept_nulls: Option<HashSet<String>>,
    /// The descriptions of the rules over several arguments.
    pub(crate) rules: Vec<&'static str>,
    /// The alternatives of its types, if they contain each other.
    pub(crate) attempts: Option<Attempts>,
}

impl ToolInput {
    /// The input of an annotated tool.
    pub(crate) fn from_parameters(name: String, input: InputSchema) -> Self {
        let InputSchema { published, validator, published_validator, .. } = input;
        let mut of_parameters = Self::new(name, published, validator);
        // a schema that cannot be compiled has no alternatives, or is an error of the declaration
        of_parameters.attempts = of_parameters.validator.as_ref().and_then(Validator::attempts);
        of_parameters.published_validator = published_validator;
        of_parameters
    }

    /// The input of an object whose members are typed.
    #[cfg(feature = "config")]
    pub(super) fn of_object(schema: &Value) -> Self {
        let validator = Validator::compile_generated(schema).ok().map(Validator::null_is_absent);
        Self::new(String::new(), schema.clone(), validator)
    }

    /// The input of a tool whose schema was written by hand.
    pub(crate) fn from_schema(name: String, schema: Value, validator: Validator) -> Self {
        Self::new(name, schema, Some(validator))
    }

    /// The input of a tool whose schema is published, and not enforced.
    pub(crate) fn unchecked(name: String, schema: Value) -> Self {
        Self { is_unchecked: true, ..Self::new(name, schema, None) }
    }

    fn new(name: String, schema: Value, validator: Option<Validator>) -> Self {
        Self {
            is_unchecked: false,
            name,
            noun: "tool",
            schema,
            published: None,
            has_hidden: false,
            validator,
            published_validator: None,
            kept_nulls: None,
            rules: Vec::new(),
            attempts: None,
        }
    }

    /// The same input, of which clients see another schema.
    pub(crate) fn published_as(mut self, schema: Value) -> Self {
        self.published = Some(schema);
        self
    }

    /// Sets the schema that clients see of a tool some of whose arguments are hidden or have another description.
    pub(crate) fn show(&mut self, schema: Value) {
        self.published = Some(schema);
        self.has_hidden = true;
    }

    /// Whether clients see an argument.
    pub(super) fn shows(&self, name: &str) -> bool {
        !self.has_hidden || self.published()["properties"].get(name).is_some()
    }

    /// The errors of a value of one argument, by the schema.
    pub(crate) fn value_errors(&self, name: &str, value: &Value) -> Vec<String> {
        let path = member_path(name);
        let mut sample = Map::new();
        sample.insert(name.to_owned(), value.clone());
        let errors =
            self.validator.as_ref().map(|validator| validator.validate(&sample.into())).unwrap_or_default();
        let of_value =
            errors.into_iter().filter(|error| error.path.starts_with(&path) && *value != Value::Null);
        of_value.map(|error| error.to_string()).collect()
    }

    /// The schema that clients see.
    pub(crate) fn published(&self) -> &Value {
        self.published.as_ref().unwrap_or(&self.schema)
    }

    /// Checks that arguments do not have too many values, or too many to decode: each costs much more than its bytes.
    ///
    /// # Errors
    /// The report.
    pub(crate) fn check_size(&self, arguments: &str) -> Result<(), Failure> {
        if has_too_many_values(arguments) {
            let error = format!("more than {MAX_VALUES} values in one call; send fewer at a time");
            return Err(refuse(self, &[error]));
        }
        self.check_attempts(arguments)
    }

    /// Checks that it does not take too much to decode arguments.
    ///
    /// # Errors
    /// The report.
    pub(super) fn check_attempts(&self, arguments: &str) -> Result<(), Failure> {
        if self.attempts.as_ref().is_some_and(|attempts| attempts.exceed(arguments, MAX_ALTERNATIVES)) {
            return Err(refuse(self, &[TOO_MANY_ATTEMPTS.to_owned()]));
        }
        Ok(())
    }

    /// The most values of which arguments of some bytes may consist to be repaired as a whole. A text of any length is one
    /// value.
    fn max_repaired(&self, bytes: usize) -> usize {
        let most = MAX_REPAIRED + bytes / BYTES_PER_REPAIRED;
        // where each value may have several forms, to find the intended one takes longer than to decode it
        if self.attempts.is_some() { most / 4 } else { most }
    }

    /// Whether arguments are repaired as a whole.
    pub(super) fn repairs_all(&self, arguments: &str) -> bool {
        count_values(arguments) <= self.max_repaired(arguments.len())
    }

    /// The arguments of a tool without typed parameters: repaired where they do not conform, without `null` for what is
    /// optional, and with the defaults of absent members.
    ///
    /// # Errors
    /// The report of everything that is invalid.
    pub(crate) fn read_untyped(&self, text: &str, strict: bool) -> Result<Value, Failure> {
        let report = |errors: &[String]| refuse(self, errors);
        let mut arguments: Value =
            serde_json::from_str(text).map_err(|error| report(&[unreadable_message(&error)]))?;
        let Some(validator) = &self.validator else { return Ok(arguments) };
        let has_duplicates = has_duplicate_keys(text);
        if has_duplicates || !validator.is_valid(&arguments) {
            let repaired =
                self.repair(text, strict).map_err(|error| report(&[unreadable_message(&error)]))?;
            if let (Some(members), Value::Object(repaired)) = (arguments.as_object_mut(), repaired.value) {
                members.extend(repaired);
            }
            self.remove_nulls(validator, &mut arguments, !strict);
            let duplicates = if has_duplicates { duplicate_keys(text) } else { Vec::new() };
            let violations = validator.validate(&arguments);
            if !duplicates.is_empty() || !violations.is_empty() {
                // what can be left out instead of `null`
                let mut without_nulls = arguments;
                validator.remove_nulls(&mut without_nulls, true);
                let left = validator.validate(&without_nulls);
                let left: HashSet<&str> = left.iter().map(|violation| violation.path.as_str()).collect();
                let advice = |error: &ValidationError| match error.to_string() {
                    text if error.message.starts_with("null is ") && !left.contains(error.path.as_str()) => {
                        format!("{text}; leave it out instead")
                    }
                    text => text,
                };
                let errors: Vec<String> =
                    duplicates.iter().map(ToString::to_string).chain(violations.iter().map(advice)).collect();
                return Err(report(&errors));
            }
        } else if may_have_float(text) {
            validator.repair(&mut arguments, true);
        }
        validator.add_defaults(&mut arguments).map_err(|error| report(&[error]))?;
        Ok(arguments)
    }

    /// Leaves out optional members that are `null`, where that means their absence.
    fn remove_nulls(&self, validator: &Validator, arguments: &mut Value, with_default: bool) {
        let (Some(kept), Some(members)) = (&self.kept_nulls, arguments.as_object_mut()) else { return };
        let kept: Map<String, Value> =
            kept.iter().filter_map(|name| Some((name.clone(), members.remove(name)?))).collect();
        validator.remove_nulls(arguments, with_default);
        if let Some(members) = arguments.as_object_mut() {
            members.extend(kept);
        }
    }

    /// The arguments after harmless mistakes in them are repaired. Of too many values, those of the members that have most of
    /// them are left as they are.
    ///
    /// # Errors
    /// The text holds something that no value can represent: half a surrogate pair, a number beyond all types.
    pub(super) fn repair<'t>(
        &self,
        text: &'t str,
        strict: bool,
    ) -> Result<RepairedArguments<'t>, serde_json::Error> {
        if self.repairs_all(text) {
            return self.repair_all(Cow::Borrowed(text), strict);
        }
        let members: HashMap<String, &RawValue> = serde_json::from_str(text)?;
        let mut members: Vec<(usize, &str, &str)> = members
            .iter()
            .map(|(name, json)| (count_values(json.get()), name.as_str(), json.get()))
            .collect();
        sort_by(&mut members, |(one, first, _), (other, second, _)| (one, first).cmp(&(other, second)));
        let mut sum = 0;
        let exceeds = |(count, ..): &(usize, &str, &str)| {
            sum += count;
            sum > self.max_repaired(text.len())
        };
        let small = members.iter().position(exceeds).unwrap_or(members.len());
        let (small, large) = members.split_at(small);
        let mut repaired = self.repair_all(Cow::Owned(object_text(small)), strict)?;
        // there may be a million of them, and a few violations
        let paths: HashSet<&str> =
            repaired.violations.iter().map(|violation| violation.path.as_str()).collect();
        let left_out: HashSet<String> = large
            .iter()
            .map(|(_, name, _)| member_path(name))
            .filter(|path| paths.contains(path.as_str()))
            .collect();
        repaired.violations.retain(|violation| !left_out.contains(&violation.path));
        repaired.rest = Some(object_text(large));
        Ok(repaired)
    }

    fn repair_all<'t>(
        &self,
        text: Cow<'t, str>,
        strict: bool,
    ) -> Result<RepairedArguments<'t>, serde_json::Error> {
        let mut value: Value = serde_json::from_str(&text)?;
        let has_changed =
            self.validator.as_ref().is_some_and(|validator| validator.repair(&mut value, strict));
        let violations = self.errors(&value);
        Ok(RepairedArguments { text, value, has_changed, rest: None, violations })
    }

    /// The errors of arguments, in which names that clients do not see are not suggested.
    fn errors(&self, value: &Value) -> Vec<ValidationError> {
        let mut errors = self.validator.as_ref().map_or_else(Vec::new, |validator| validator.validate(value));
        if let Some(published) = self.published_validator.as_ref().filter(|_| !errors.is_empty()) {
            let published = published.validate(value);
            let only_at = |errors: &[ValidationError], path: &str| {
                let mut at = errors.iter().filter(|error| error.path == path);
                at.next().filter(|_| at.next().is_none()).cloned()
            };
            let of_published = |error: &ValidationError| {
                only_at(&errors, &error.path).and_then(|_| only_at(&published, &error.path))
            };
            errors =
                errors.iter().map(|error| of_published(error).unwrap_or_else(|| error.clone())).collect();
        }
        errors
    }

    /// What a type that reads the arguments may refuse, though the schema does not: texts without their `format`, and `null`
    /// where it is not read as absence.
    pub(super) fn errors_of_type(&self, arguments: &str, null_is_absent: bool) -> Vec<ValidationError> {
        let value = serde_json::from_str(arguments).ok();
        self.validator
            .as_ref()
            .zip(value)
            .map(|(validator, value)| validator.errors_of_type(&value, null_is_absent))
            .unwrap_or_default()
    }
}

/// Arguments after harmless mistakes in them were repaired.
pub(super) struct RepairedArguments<'t> {
    /// The text that was looked at ..
    text: Cow<'t, str>,
    /// .. and what it has become.
    value: Value,
    has_changed: bool,
    /// An object of the members that were left as they are.
    rest: Option<String>,
    /// What remains wrong in those that were looked at.
    pub(super) violations: Vec<ValidationError>,
}

impl RepairedArguments<'_> {
    /// Whether all members were looked at.
    pub(super) fn are_all(&self) -> bool {
        self.rest.is_none()
    }

    /// The text of all, if it has changed.
    pub(super) fn changed(&self) -> Option<String> {
        let text = self.has_changed.then(|| rewrite(&self.text, &self.value))?;
        Some(match &self.rest {
            Some(rest) => join_objects(&text, rest),
            None => text,
        })
    }
}

/// An object with these members, of which each has a number of values, a name and a text.
fn object_text(members: &[(usize, &str, &str)]) -> String {
    let members = members.iter().map(|(_, name, json)| format!("{}:{json}", Value::from(*name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The text of an object with the members of two.
fn join_objects(one: &str, other: &str) -> String {
    let inner = |object: &str| object.get(1..object.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let (one, other) = (inner(one), inner(other));
    let comma = if one.is_empty() || other.is_empty() { "" } else { "," };
    format!("{{{one}{comma}{other}}}")
}

/// The report on a tool's arguments.
fn refuse(tool: &ToolInput, errors: &[String]) -> Failure {
    Report::of_tool(tool, &[], errors, &[]).refuse(&[])
}

/// Whether a fraction or an exponent follows a digit, which it does in a text as well.
fn may_have_float(json: &str) -> bool {
    let json = json.as_bytes();
    let follows_digit = |at: usize| at > 0 && json.get(at - 1).is_some_and(u8::is_ascii_digit);
    memchr::memchr3_iter(b'.', b'e', b'E', json).any(follows_digit)
}
