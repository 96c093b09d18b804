//! The report of rejected arguments, which names everything that is invalid.

use super::{arg::AnyArg, call::RawArguments, rule_fn::BrokenRule, tool_input::ToolInput};
use crate::{
    core::error::Failure,
    schema::{member_path, nearest, signature, truncate, without_position},
};

/// The most unknown names that one report lists; a client may send a million.
const MAX_UNKNOWN: usize = 100;

/// The line of a report for arguments that cannot be parsed.
pub(super) fn unreadable_message(error: &serde_json::Error) -> String {
    format!("the arguments cannot be read: {}", without_position(error))
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
        errors.extend(found.iter().map(|problem| format!("`{}`: {problem}", arg.name())));
    }
    errors
}
