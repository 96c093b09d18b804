//! The second look at arguments that did not fit: repair what is harmless, else say everything that is wrong.

use std::sync::OnceLock;

use serde_json::Value;

use super::{AnyArg, Slots};
use crate::{
    reply::Failure,
    schema::{Validator, coerce, nearest, signature},
};

/// What is known of a tool's input; compiled when a call first fails.
#[derive(Debug)]
pub(crate) struct ToolInput {
    pub(crate) name: String,
    pub(crate) schema: Value,
    compiled: OnceLock<Option<Validator>>,
}

impl ToolInput {
    pub(crate) fn new(name: String, schema: Value) -> Self {
        Self { name, schema, compiled: OnceLock::new() }
    }

    fn validator(&self) -> Option<&Validator> {
        self.compiled.get_or_init(|| Validator::compile(&self.schema).ok()).as_ref()
    }
}

/// The arguments with harmless slips repaired, and what is still wrong with them.
pub(crate) fn repair(tool: &ToolInput, text: &str, strict: bool) -> (String, Vec<String>) {
    let mut value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(e) => return (text.to_owned(), vec![format!("the arguments cannot be read: {e}")]),
    };
    let changed = coerce(&tool.schema, &tool.schema, &mut value, strict);
    let violations = tool.validator().map_or_else(Vec::new, |validator| validator.validate(&value));
    let repaired = if changed { value.to_string() } else { text.to_owned() };
    (repaired, violations.iter().map(ToString::to_string).collect())
}

/// What typed decoding and parameter rules object to, argument by argument.
pub(crate) fn complaints(args: &[&'static dyn AnyArg], slots: &Slots<'_>) -> Vec<String> {
    let each = |(index, arg): (usize, &&'static dyn AnyArg)| {
        let complaints = arg.complaints(slots, index);
        complaints
            .into_iter()
            .map(move |complaint| format!("`{}`: {complaint}", arg.name()))
            .collect::<Vec<_>>()
    };
    args.iter().enumerate().flat_map(each).collect()
}

/// The report that a model reads: every violation, near-miss names, and the signature.
pub(crate) fn tool(
    tool: &ToolInput,
    args: &[&'static dyn AnyArg],
    violations: Vec<String>,
    unknown: &[String],
) -> String {
    let mut text = format!("invalid arguments for tool `{}`:", tool.name);
    let mut said = violations;
    for key in unknown {
        // the validator of a strict tool has said it already
        if said.iter().any(|line| line.contains(&format!("unknown argument `{key}`"))) {
            continue;
        }
        let near = nearest(key, args.iter().map(|arg| arg.name()));
        said.push(match near {
            Some(near) => format!("unknown argument `{key}`; did you mean `{near}`?"),
            None => format!("unknown argument `{key}`"),
        });
    }
    for line in &said {
        text.push_str("\n- ");
        text.push_str(line);
    }
    text.push_str("\nexpected: ");
    text.push_str(&signature(&tool.name, &tool.schema));
    text
}

/// The same for prompts and resources.
pub(crate) fn text(args: &[&'static dyn AnyArg], slots: &Slots<'_>) -> String {
    complaints(args, slots).join("; ")
}

/// The arguments of a tool without typed parameters, repaired.
///
/// # Errors
/// The report of everything that is still wrong.
pub(crate) fn repaired(input: &ToolInput, text: &str, strict: bool) -> Result<Value, Failure> {
    let (repaired, violations) = repair(input, text, strict);
    match serde_json::from_str(&repaired) {
        Ok(value) if violations.is_empty() => Ok(value),
        _ => Err(Failure::Arguments(tool(input, &[], violations, &[]))),
    }
}
