//! What is wrong with values that a type refused: where, and why, in words for a model. `serde` says both of few values, so
//! the place is found by decoding again, and the reason by the schema where that knows it.

use std::{any::TypeId, fmt};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    arg::AnyArg,
    call::{RawArgument, RawArguments, has_single_precision, single_precision_error},
    tool_input::ToolInput,
};
use crate::schema::{
    ErrorKind, IntegerType, Place, ValidationError, beginning, locate, locate_inside, member_path, nearest,
    truncate, without_position,
};

/// The longest argument that is decoded although the schema already refuses a part of it: to find the place of another error
/// takes several attempts.
const MAX_DECODED_BYTES: usize = 32 << 10;

/// One thing that is wrong, and where.
#[derive(Debug)]
pub(crate) struct Problem {
    /// As in `due_before` or `[0]`; empty for the whole value.
    pub(crate) path: String,
    pub(crate) kind: ProblemKind,
    /// The reason, with the value in the text.
    pub(super) message: String,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// A required value is absent.
    Missing,
    /// The schema expects something else, as in `an integer`.
    Mismatch { expected: String },
    /// The type refuses this text, number, boolean or null.
    Scalar(String),
    /// The type refuses an array or an object with this message: perhaps for a part of it that is not known.
    Container(String),
    /// A rule is broken.
    Rule,
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { path: String::new(), kind: ProblemKind::Rule, message }
    }
}

impl From<&ValidationError> for Problem {
    fn from(error: &ValidationError) -> Self {
        let ValidationError { path, expected, kind, message } = error;
        let kind = match kind {
            ErrorKind::Missing => ProblemKind::Missing,
            _ => ProblemKind::Mismatch { expected: expected.clone() },
        };
        Self { path: path.clone(), kind, message: message.clone() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, message, .. } = self;
        if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
    }
}

impl Problem {
    /// Why decoding a value failed; `decode` decodes JSON text as the same type.
    pub(super) fn of(
        raw: RawArgument<'_>,
        id: TypeId,
        error: &serde_json::Error,
        decode: &dyn Fn(&str) -> Option<serde_json::Error>,
    ) -> Self {
        let RawArgument::Json(json) = raw else { return Self::of_text(raw, error) };
        match single_precision_error(json).filter(|_| has_single_precision(id)) {
            Some(message) => message.into(),
            None => Self::of_json(json, error, decode),
        }
    }

    fn of_json(
        json: &str,
        error: &serde_json::Error,
        decode: &dyn Fn(&str) -> Option<serde_json::Error>,
    ) -> Self {
        let Place { mut path, mut value } = locate(json, error, decode);
        let text = without_position(error);
        let of_key = key_error(&path, value.as_deref(), &text);
        // what is read into a buffer is refused where its reader has got to, which may be at the tag
        if value.as_deref().is_some_and(|value| !is_about(&text, value)) && of_key.is_none() {
            path.truncate(path.rfind(['.', '[']).unwrap_or(0));
            value = None;
        }
        let message = of_key.unwrap_or_else(|| refusal(value.as_deref(), text.clone()));
        Self { path, kind: value.map_or(ProblemKind::Container(text), ProblemKind::Scalar), message }
    }

    /// The problem of the scalar for which an array or object is refused, if trials find it.
    fn narrowed(self, json: &str, decode: &dyn Fn(&str) -> Option<serde_json::Error>) -> Self {
        let ProblemKind::Container(text) = &self.kind else { return self };
        let of_members = ["missing field", "unknown field", "duplicate field", "unknown variant"];
        if of_members.iter().any(|start| text.starts_with(start)) {
            return self;
        }
        match locate_inside(json, &self.path, text, decode) {
            Some(Place { path, value: Some(value) }) => {
                let message = refusal(Some(&value), text.clone());
                Self { path, kind: ProblemKind::Scalar(value), message }
            }
            _ => self,
        }
    }

    /// Whether an array or an object is refused, perhaps for a part of it.
    fn is_of_container(&self) -> bool {
        matches!(self.kind, ProblemKind::Container(_))
    }

    pub(super) fn of_text(raw: RawArgument<'_>, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let (RawArgument::Text(text) | RawArgument::Listed(text, _)) = raw else {
            return refusal(None, message).into();
        };
        let is_named = message.contains(&format!("`{text}`"));
        let quoted = format!("\"{}\"", truncate(text));
        Self::from(refusal(Some(&*quoted).filter(|_| !is_named), message))
    }

    /// The problem of a value that is at `path` of another.
    pub(crate) fn at(mut self, path: &str) -> Self {
        let dot =
            if path.is_empty() || self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{path}{dot}{}", self.path);
        self
    }
}

/// Errors of typed decoding and of parameter rules in arguments that satisfy the schema: from a `Deserialize`
/// written by the user, or a number outside of its type, which schemas do not express. `object` has all arguments.
pub(super) fn decode_errors(
    tool: &ToolInput,
    args: &[&'static dyn AnyArg],
    slots: &RawArguments<'_>,
    object: &str,
    validation_errors: &[ValidationError],
) -> Vec<Problem> {
    let mut errors = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let path = if arg.is_flatten() { String::new() } else { member_path(arg.name()) };
        let reported = Reported::of(&path, validation_errors);
        // nothing in it can be looked at
        if reported.is_whole() {
            continue;
        }
        let Some(RawArgument::Json(json)) = arg.raw_value(slots, index) else {
            if reported.places.is_empty() {
                errors.extend(arg.value_errors(slots, index).into_iter().map(|problem| problem.at(&path)));
            }
            continue;
        };
        // to look for more in a long argument takes too long
        if !reported.places.is_empty() && json.len() > MAX_DECODED_BYTES {
            continue;
        }
        match arg.violations(RawArgument::Json(json), slots.strict) {
            Ok(violations) if reported.places.is_empty() => {
                errors.extend(violations.into_iter().map(|text| Problem::from(text).at(&path)));
            }
            Ok(_) => {}
            Err(first) => {
                let by_schema = reported.explain(tool, object, &first);
                if !by_schema.is_empty() {
                    errors.extend(by_schema);
                } else if !reported.covers(&first) {
                    // where each value may have several forms, to decode once takes long enough
                    let narrowed = match tool.attempts {
                        None => first.narrowed(json, &|json| arg.decode_error(json)),
                        Some(_) => first,
                    };
                    errors.push(narrowed.at(&path));
                }
            }
        }
    }
    errors
}

/// What the schema refuses of one argument.
struct Reported<'p> {
    /// The path of the argument.
    path: &'p str,
    /// The paths of what is refused, from the argument on; that of the whole argument is empty.
    places: Vec<String>,
}

impl<'p> Reported<'p> {
    fn of(path: &'p str, errors: &[ValidationError]) -> Self {
        Self { path, places: errors.iter().filter_map(|error| place_in(path, error)).collect() }
    }

    /// Whether the whole argument is refused.
    fn is_whole(&self) -> bool {
        self.places.iter().any(String::is_empty)
    }

    /// The problems that the schema can tell where a type has refused a value, but for those that are reported.
    fn explain(&self, tool: &ToolInput, object: &str, first: &Problem) -> Vec<Problem> {
        if !tool.repairs_all(object) {
            return Vec::new();
        }
        let of_type = tool.errors_of_type(object, first.is_of_container());
        let explained = of_type.iter().filter_map(|error| {
            let place = place_in(self.path, error)?;
            if !is_within(&place, &first.path) || self.places.contains(&place) {
                return None;
            }
            let mut problem = Problem::from(error);
            // a value of a schema has no more digits than 64 bits
            if let (ErrorKind::NotOfType(integer), ProblemKind::Scalar(number)) = (error.kind, &first.kind)
                && place == first.path
            {
                problem.message = integer.refusal(number);
            }
            Some(problem)
        });
        explained.collect()
    }

    /// Whether what is reported says a problem: where a part of a value is reported, what is said of the whole is about that
    /// part.
    fn covers(&self, problem: &Problem) -> bool {
        self.places.iter().any(|known| {
            problem.is_of_container() || is_within(known, &problem.path) || is_within(&problem.path, known)
        })
    }
}

/// The place of an error in an argument, from that on; `None` if it is elsewhere.
fn place_in(argument: &str, error: &ValidationError) -> Option<String> {
    let rest = error.path.strip_prefix(argument)?;
    if argument.is_empty() || rest.is_empty() || rest.starts_with('[') {
        return Some(rest.to_owned());
    }
    rest.strip_prefix('.').map(str::to_owned)
}

/// Whether a path is that of a value, or of a part of it.
pub(crate) fn is_within(path: &str, value: &str) -> bool {
    path.strip_prefix(value)
        .is_some_and(|rest| value.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether serde's own message can be about a scalar: it names what it is about.
fn is_about(message: &str, value: &str) -> bool {
    if message.starts_with("missing field `") {
        return false;
    }
    let text = value.strip_prefix('"').map(|text| text.trim_end_matches('"').trim_end_matches('…'));
    if let Some(name) = message.strip_prefix("unknown variant `") {
        return text.is_some_and(|text| name.starts_with(text));
    }
    let prefixes = ["invalid type: ", "invalid value: "];
    let Some(found) = prefixes.iter().find_map(|prefix| message.strip_prefix(prefix)) else { return true };
    match (found.strip_prefix("string \""), text) {
        (Some(found), Some(text)) => found.starts_with(text),
        (None, None) => !found.starts_with("map") && !found.starts_with("sequence"),
        _ => false,
    }
}

/// The error of a map's key, at the end of a path, that a decoder refused: its message is not about the `value` there.
fn key_error(path: &str, value: Option<&str>, message: &str) -> Option<String> {
    let key = path.rsplit('.').next().filter(|key| !key.is_empty() && !key.ends_with(']'))?;
    let is_of_text = value.is_some_and(|value| value.starts_with('"'));
    if message == "invalid number" {
        return Some(format!("the key `{key}` is not a number as JSON writes it"));
    }
    let (found, expected) = message.split_once(", expected ")?;
    let is_text = found.starts_with("invalid type: string") || found.starts_with("invalid value: string");
    if is_text && !is_of_text {
        let expected = if expected == "a boolean" { "`true` or `false`" } else { expected };
        return Some(format!("the key `{key}` is not {expected}"));
    }
    let number = found.strip_prefix("invalid value: integer `")?.strip_suffix('`')?;
    let integer = IntegerType::named(expected).filter(|_| number == key && value != Some(number))?;
    Some(format!("the key {}", integer.refusal(number)))
}

/// The message of a type that parses itself, which often does not say what it could not parse.
fn refusal(value: Option<&str>, mut message: String) -> String {
    const MAX_BYTES: usize = 500;
    if let Some(message) = plain_words(value, &message) {
        return message;
    }
    let names_value = |value: &str| match value {
        "null" => message.contains(value),
        text if text.starts_with('"') => message.contains(text),
        other => message.contains(&format!("`{other}`")),
    };
    if let Some(value) = value.filter(|value| !names_value(value)) {
        message = format!("{value} is not accepted: {message}");
    }
    // it may quote all of a long value
    if message.len() > MAX_BYTES {
        message.truncate(beginning(&message, MAX_BYTES).len());
        message.push('…');
    }
    message
}

/// A message of serde's own in the words of other reports: it names types of Rust. `None` for the message of a type.
fn plain_words(value: Option<&str>, message: &str) -> Option<String> {
    if message.starts_with("data did not match any variant of untagged enum ") {
        let value = value.map_or(String::new(), |value| format!("{value} is not accepted: "));
        return Some(format!("{value}it has none of the allowed forms"));
    }
    if let Some((name, expected)) =
        message.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, "))
        && let Some(names) = expected.strip_prefix("expected ")
    {
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let near = nearest(name, names.iter().copied());
        let near = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
        let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        return Some(format!("\"{}\" is not one of {}{near}", truncate(name), names.join(", ")));
    }
    let found = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = found.split_once(", expected ")?;
    let is_of = |start: &str| expected.starts_with(start);
    let expected = match expected {
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a borrowed string" => "a string".to_owned(),
        "a map" => "an object".to_owned(),
        "a sequence" => "an array".to_owned(),
        "unit" => "null".to_owned(),
        _ if is_of("unit ") => "null".to_owned(),
        _ if is_of("tuple ") || is_of("a tuple ") || is_of("an array of length") => "an array".to_owned(),
        _ if is_of("struct ") || is_of("internally tagged enum ") || is_of("adjacently tagged enum ") => {
            "an object".to_owned()
        }
        _ if is_of("enum ") || is_of("newtype ") => "of that type".to_owned(),
        "variant identifier" | "field identifier" => "a name".to_owned(),
        integer => IntegerType::named(integer)?.to_string(),
    };
    let found = match (value, found) {
        (Some(value), _) => value,
        (None, "map") => "an object",
        (None, "sequence") => "an array",
        (None, other) => other,
    };
    Some(format!("{found} is not {expected}"))
}

/// A member of arguments that are a value already.
///
/// # Errors
/// The path of what is rejected, and why.
pub(crate) fn decode_member<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value).or_else(|_| {
        // again as text, in which an error has a place
        let json = value.to_string();
        let decode = |json: &str| serde_json::from_str::<T>(json);
        decode(&json).map_err(|error| {
            let decode = |json: &str| decode(json).err();
            Problem::of(RawArgument::Json(&json), typeid::of::<T>(), &error, &decode).at(name).to_string()
        })
    })
}
