//! The second look at arguments that did not fit: repair what is harmless, else say everything that is wrong.

use std::sync::OnceLock;

use serde_json::Value;

use crate::arguments::{AnyArg, Slots};
use crate::{
    error::Failure,
    schema::{ValidationError, Validator, coerce, member_path, nearest, signature, truncate},
};

/// The most unknown names that one report lists; a client may send a million.
const MOST_UNKNOWN: usize = 100;

/// What is known of a tool's input; compiled when a call first fails.
#[derive(Debug)]
pub(crate) struct ToolInput {
    pub(crate) name: String,
    pub(crate) schema: Value,
    /// Whether `null` stands for an absent member, as it does for typed parameters.
    null_is_absent: bool,
    compiled: OnceLock<Option<Validator>>,
}

impl ToolInput {
    /// The input of an annotated tool.
    pub(crate) fn typed(name: String, schema: Value) -> Self {
        Self { name, schema, null_is_absent: true, compiled: OnceLock::new() }
    }

    /// The input of a tool whose schema was written by hand.
    pub(crate) fn written(name: String, schema: Value) -> Self {
        Self { name, schema, null_is_absent: false, compiled: OnceLock::new() }
    }

    fn validator(&self) -> Option<&Validator> {
        let compile = || {
            let validator = Validator::compile(&self.schema).ok()?;
            Some(if self.null_is_absent { validator.null_is_absent() } else { validator })
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// The arguments with harmless slips repaired, and what is still wrong with them.
///
/// # Errors
/// The text holds something that no value can: half a surrogate pair, a number beyond all types.
pub(crate) fn repair(
    tool: &ToolInput,
    text: &str,
    strict: bool,
) -> Result<(String, Vec<ValidationError>), serde_json::Error> {
    let mut value: Value = serde_json::from_str(text)?;
    let changed = coerce(&tool.schema, &tool.schema, &mut value, strict);
    let errors = tool.validator().map_or_else(Vec::new, |validator| validator.validate(&value));
    Ok((if changed { value.to_string() } else { text.to_owned() }, errors))
}

/// What to say of arguments that cannot be read at all.
pub(crate) fn unreadable(error: &serde_json::Error) -> String {
    format!("the arguments cannot be read: {}", without_position(error))
}

/// An error of `serde_json` without its place in the text, which nobody sees.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.line() > 0
        && let Some(at) = text.rfind(" at line ")
    {
        text.truncate(at);
    }
    text
}

/// What typed decoding and parameter rules object to in arguments without a validation error: a `Deserialize` of the
/// user's own, or a number out of its type, which the schema cannot tell.
pub(crate) fn unsaid(
    args: &[&'static dyn AnyArg],
    slots: &Slots<'_>,
    errors: &[ValidationError],
) -> Vec<String> {
    let mut unsaid = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let path = if arg.is_flatten() { String::new() } else { member_path(arg.name()) };
        let about = |error: &ValidationError| {
            let rest = error.path.strip_prefix(path.as_str());
            rest.is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if errors.iter().any(about) {
            continue;
        }
        let separator = if path.is_empty() { "" } else { ": " };
        unsaid.extend(
            arg.complaints(slots, index).into_iter().map(|complaint| format!("{path}{separator}{complaint}")),
        );
    }
    unsaid
}

/// The report that a model reads: every validation error, near-miss names, and the signature.
pub(crate) fn tool(
    tool: &ToolInput,
    args: &[&'static dyn AnyArg],
    said: &[String],
    unknown: &[String],
) -> String {
    let mut text = format!("invalid arguments for tool `{}`:", tool.name);
    let mut say = |line: &str| {
        text.push_str("\n- ");
        text.push_str(line);
    };
    said.iter().for_each(|line| say(line));
    for key in unknown.iter().take(MOST_UNKNOWN) {
        let line = format!("unknown argument `{}`", truncate(key));
        // the validator has said it already of a strict tool, and of a name near to another
        if said.iter().any(|said| said.starts_with(&line)) {
            continue;
        }
        match nearest(key, args.iter().map(|arg| arg.name())) {
            Some(near) => say(&format!("{line}; did you mean `{near}`?")),
            None => say(&line),
        }
    }
    if unknown.len() > MOST_UNKNOWN {
        say(&format!("and {} more unknown arguments", unknown.len() - MOST_UNKNOWN));
    }
    text.push_str("\nexpected: ");
    text.push_str(&signature(&tool.name, &tool.schema));
    text
}

/// The same for prompts and resources.
pub(crate) fn text(args: &[&'static dyn AnyArg], slots: &Slots<'_>) -> String {
    let each = |(index, arg): (usize, &&'static dyn AnyArg)| {
        let complaints = arg.complaints(slots, index).into_iter();
        complaints.map(move |complaint| format!("`{}`: {complaint}", arg.name())).collect::<Vec<_>>()
    };
    args.iter().enumerate().flat_map(each).collect::<Vec<_>>().join("; ")
}

/// Makes integers of whole floats where the schema has integers: `1.0` fits, but is no integer to typed decoding.
pub(crate) fn whole(input: &ToolInput, arguments: &mut Value) {
    coerce(&input.schema, &input.schema, arguments, true);
}

/// The arguments of a tool without typed parameters, repaired.
///
/// # Errors
/// The report of everything that is still wrong.
pub(crate) fn repaired(input: &ToolInput, text: &str, strict: bool) -> Result<Value, Failure> {
    let said = match repair(input, text, strict) {
        Err(error) => vec![unreadable(&error)],
        Ok((repaired, errors)) => match serde_json::from_str(&repaired) {
            Ok(value) if errors.is_empty() => return Ok(value),
            _ => errors.iter().map(ToString::to_string).collect(),
        },
    };
    Err(Failure::Arguments(tool(input, &[], &said, &[])))
}
