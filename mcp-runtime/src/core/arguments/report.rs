//! The report of rejected arguments, which names everything that is invalid.

use super::{
    arg::AnyArg,
    call::{RawArgument, RawArguments, ValueError},
    rule_fn::BrokenRule,
    tool_input::ToolInput,
};
use crate::{
    core::error::Failure,
    schema::{ValidationError, member_path, nearest, signature, truncate, without_position},
};

/// The most unknown names that one report lists; a client may send a million.
const MAX_UNKNOWN: usize = 100;

/// The longest argument that is decoded although the schema already refuses a part of it: to find the place of another error
/// takes several attempts.
const MAX_DECODED_BYTES: usize = 32 << 10;

/// The line of a report for arguments that cannot be parsed.
pub(super) fn unreadable_message(error: &serde_json::Error) -> String {
    format!("the arguments cannot be read: {}", without_position(error))
}

/// Errors of typed decoding and of parameter rules in arguments that satisfy the schema: from a `Deserialize`
/// written by the user, or a number outside of its type, which schemas do not express.
pub(super) fn decode_errors(
    tool: &ToolInput,
    args: &[&'static dyn AnyArg],
    slots: &RawArguments<'_>,
    validation_errors: &[ValidationError],
) -> Vec<String> {
    let mut errors = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let path = if arg.is_flatten() { String::new() } else { member_path(arg.name()) };
        // from the argument on; the whole argument is an empty path
        let within = |error: &ValidationError| {
            let rest = error.path.strip_prefix(path.as_str())?;
            if path.is_empty() || rest.is_empty() || rest.starts_with('[') {
                return Some(rest.to_owned());
            }
            rest.strip_prefix('.').map(str::to_owned)
        };
        let reported: Vec<String> = validation_errors.iter().filter_map(within).collect();
        // nothing in it can be looked at
        if reported.iter().any(String::is_empty) {
            continue;
        }
        let Some(RawArgument::Json(json)) = arg.raw_value(slots, index) else {
            if reported.is_empty() {
                errors.extend(arg.value_errors(slots, index).iter().map(|error| error.line(&path)));
            }
            continue;
        };
        // to look for more in a long argument takes too long
        if !reported.is_empty() && json.len() > MAX_DECODED_BYTES {
            continue;
        }
        match arg.violations(RawArgument::Json(json), slots.strict) {
            Ok(violations) if reported.is_empty() => {
                errors.extend(violations.into_iter().map(|text| ValueError::from(text).line(&path)));
            }
            Ok(_) => {}
            Err(first) => {
                // by the schema, if that can tell
                let by_schema = if tool.repairs_all(slots.object) {
                    tool.errors_of_type(slots.object, first.is_whole_object)
                } else {
                    Vec::new()
                };
                let in_it = |error: &&ValidationError| {
                    within(error)
                        .is_some_and(|place| is_within(&place, &first.path) && !reported.contains(&place))
                };
                let mut lines: Vec<_> = by_schema.iter().filter(in_it).map(ToString::to_string).collect();
                // where a part of a value is reported, what is said of the whole is about that part
                let is_said = |known: &String| {
                    first.is_whole_object || is_within(known, &first.path) || is_within(&first.path, known)
                };
                if lines.is_empty() && !reported.iter().any(is_said) {
                    lines.push(first.line(&path));
                }
                errors.extend(lines);
            }
        }
    }
    errors
}

/// Whether a path is that of a value, or of a part of it.
fn is_within(path: &str, value: &str) -> bool {
    path.strip_prefix(value)
        .is_some_and(|rest| value.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A report, before it is known which rules are broken.
pub(super) struct Report {
    before: String,
    /// The parts that follow the lines about rules; `None` for texts, whose report is one line.
    after: Option<String>,
}

impl Report {
    /// The report on the arguments of a prompt, or on the variables of a URI.
    pub(super) fn of_texts(errors: &[String]) -> Self {
        Self { before: errors.join("; "), after: None }
    }

    /// The report on a tool's arguments, which the model reads: every error, near-miss names, and the signature.
    pub(super) fn of_tool(
        tool: &ToolInput,
        args: &[&'static dyn AnyArg],
        errors: &[String],
        unknown: &[String],
    ) -> Self {
        let mut before = format!("invalid arguments for {} `{}`:", tool.noun, tool.name);
        errors.iter().for_each(|line| add_line(&mut before, line));
        let mut after = String::new();
        for key in unknown.iter().take(MAX_UNKNOWN) {
            let line = format!("unknown argument `{}`", truncate(key));
            // the validator reports unknown names of strict tools, and those with a near miss
            if errors.iter().any(|error| error.starts_with(&line)) {
                continue;
            }
            match nearest(key, args.iter().map(|arg| arg.name()).filter(|name| tool.shows(name))) {
                Some(near) => add_line(&mut after, &format!("{line}; did you mean `{near}`?")),
                None => add_line(&mut after, &line),
            }
        }
        if unknown.len() > MAX_UNKNOWN {
            add_line(&mut after, &format!("and {} more unknown arguments", unknown.len() - MAX_UNKNOWN));
        }
        after.push_str("\nexpected: ");
        after.push_str(&signature(&tool.name, if tool.has_hidden { tool.published() } else { &tool.schema }));
        for rule in &tool.rules {
            after.push_str("\nrule: ");
            after.push_str(rule);
        }
        Self { before, after: Some(after) }
    }

    /// The report with these rules, which are broken.
    pub(super) fn refuse(self, broken: &[BrokenRule]) -> Failure {
        let Self { before: mut text, after } = self;
        for rule in broken {
            if after.is_some() {
                add_line(&mut text, &rule_line(rule));
            } else {
                text.push_str(if text.is_empty() { "" } else { "; " });
                text.push_str(&rule_text(rule));
            }
        }
        Failure::Arguments(text + after.as_deref().unwrap_or_default())
    }
}

fn add_line(text: &mut String, line: &str) {
    text.push_str("\n- ");
    text.push_str(line);
}

/// The line of a tool's report on a rule that is broken.
fn rule_line((names, message): &BrokenRule) -> String {
    let paths: Vec<_> = names.iter().map(|name| member_path(name)).collect();
    format!("{}: {message}", paths.join(", "))
}

/// The part of a report on texts on a rule that is broken.
fn rule_text((names, message): &BrokenRule) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{}: {message}", names.join(", "))
}

/// The report on a prompt's arguments, or on the variables of a URI.
pub(super) fn text_errors(args: &[&'static dyn AnyArg], slots: &RawArguments<'_>) -> Vec<String> {
    let mut errors = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let found = arg.value_errors(slots, index);
        errors.extend(found.iter().map(|error| format!("`{}`: {}", arg.name(), error.line(""))));
    }
    errors
}
