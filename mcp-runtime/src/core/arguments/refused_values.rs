//! Everything that a type refuses in an argument whose parts parse themselves. A decoder stops at the first value that it
//! refuses; so that value is replaced by one that the type accepts, and the next one is found, as long as that is cheap.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    arg::AnyArg,
    call::{RawArgument, ValueError},
    report::ToolInput,
};
use crate::schema::{TextPlaces, member_path};

/// How many bytes are decoded to look for more than one value, each as often as it is: a text is decoded once for each value
/// that is tried in it, and several times more to find the place of an error.
pub(super) const MAX_DECODED_BYTES: usize = 32 << 10;
/// How often the text of one argument is decoded.
const MAX_DECODED: usize = 300;
/// The same of types whose alternatives contain themselves.
const MAX_DECODED_RECURSIVE: usize = 12;
/// The most values of an object that are tried one by one.
const MAX_TRIED: usize = 40;

/// Values to write in place of a refused one: one of these fits most types.
const SAMPLES: [&str; 22] = [
    r#""""#,
    "1",
    "0",
    "true",
    r#""2026-07-28""#,
    r#""2026-07-28T12:00:00Z""#,
    r#""2026-07-28T12:00:00""#,
    r#""12:00:00""#,
    r#""67e55044-10b1-426f-9247-bb680e5fe0c8""#,
    r#""https://example.com/""#,
    r#""127.0.0.1""#,
    r#""::1""#,
    r#""a@example.com""#,
    r#""1""#,
    r#""1s""#,
    r#""PT1S""#,
    r#""a""#,
    r#""aa""#,
    "-1",
    "null",
    "[]",
    "{}",
];

/// The samples for a value: in place of a number, numbers first.
fn samples(own: &str) -> impl Iterator<Item = &'static str> {
    let is_number = own.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let numbers = ["1", "0", "-1"].into_iter().filter(move |_| is_number);
    numbers.chain(SAMPLES)
}

/// An argument whose value is refused.
pub(super) struct RefusedArgument<'a> {
    pub(super) arg: &'static dyn AnyArg,
    pub(super) json: &'a str,
    pub(super) strict: bool,
    /// Its path; empty for one that is the whole object.
    pub(super) path: &'a str,
    /// The paths in it that the report has already, from the argument on.
    pub(super) reported: Vec<String>,
    /// The values in it that do not have the format of their schema: path from the argument on, expectation and line.
    pub(super) formats: &'a dyn Fn() -> Vec<(String, String, String)>,
    pub(super) tool: &'a ToolInput,
}

/// A search for the values that a type refuses.
struct RefusalSearch<'a> {
    argument: &'a RefusedArgument<'a>,
    decodes: usize,
    /// The text, with samples in place of the values that were found.
    text: String,
    replaced: HashSet<String>,
    lines: Vec<String>,
}

impl RefusedArgument<'_> {
    /// A line for each value that the type refuses, after its `first` error.
    pub(super) fn lines(&self, first: ValueError) -> Vec<String> {
        let most = if self.tool.attempts.is_some() { MAX_DECODED_RECURSIVE } else { MAX_DECODED };
        let decodes = most.min(MAX_DECODED_BYTES / self.json.len().max(1));
        let mut search = RefusalSearch {
            argument: self,
            decodes,
            text: self.json.to_owned(),
            replaced: HashSet::new(),
            lines: Vec::new(),
        };
        let mut next = Some(first);
        while let Some(error) = next {
            next = search.follow(error);
        }
        search.lines
    }
}

impl RefusalSearch<'_> {
    /// Why the text is refused; `None` also once it was decoded too often.
    fn refusal(&mut self, text: &str) -> Option<ValueError> {
        self.decodes = self.decodes.saturating_sub(1);
        let argument = self.argument;
        argument.arg.violations(RawArgument::Json(text), argument.strict).err()
    }

    fn is_reported(&self, path: &str) -> bool {
        self.argument.reported.iter().any(|reported| reported == path)
    }

    /// Whether the report has something about a part of this value, or about one that it is part of.
    fn is_reported_around(&self, path: &str) -> bool {
        self.argument.reported.iter().any(|reported| is_within(reported, path) || is_within(path, reported))
    }

    fn report(&mut self, error: &ValueError) {
        if !self.is_reported(&error.path) {
            self.lines.push(error.line(self.argument.path));
        }
    }

    /// Reports an error, and makes the text free of it; returns the next one.
    fn follow(&mut self, error: ValueError) -> Option<ValueError> {
        if let Some(field) = missing_field(&error) {
            return self.add_member(&error, &field);
        }
        if error.is_whole_object {
            return self.look_inside(error);
        }
        if !self.replaced.insert(error.path.clone()) {
            return None;
        }
        let Some(range) = TextPlaces::scalar(&self.text, &error.path) else {
            self.report(&error);
            return None;
        };
        let own = self.text.get(range.clone()).unwrap_or_default().to_owned();
        for sample in samples(&own) {
            if self.decodes == 0 {
                break;
            }
            let mut text = self.text.clone();
            text.replace_range(range.clone(), sample);
            let next = self.refusal(&text);
            if next.as_ref().is_some_and(|next| next.path == error.path && !next.is_whole_object) {
                continue;
            }
            let in_words = is_of_alternatives(&error).then(|| out_of_range(&own, sample)).flatten();
            match in_words {
                Some(message) => {
                    self.report(&ValueError { path: error.path, message, is_whole_object: false });
                }
                None => self.report_alternatives(error),
            }
            self.text = text;
            return next;
        }
        self.report_alternatives(error);
        None
    }

    /// Reports what no alternative accepts in the words of the schema.
    fn report_alternatives(&mut self, error: ValueError) {
        if is_of_alternatives(&error) {
            let absolute = join(self.argument.path, &error.path);
            let value = TextPlaces::scalar(self.argument.json, &error.path)
                .and_then(|range| self.argument.json.get(range))
                .map_or("the value".to_owned(), |text| crate::schema::truncate(text).to_owned());
            let message = match self.argument.tool.expected_at(&absolute) {
                Some(expected) => format!("{value} is not accepted; it takes {expected}"),
                None => format!("{value} has none of the forms that are accepted"),
            };
            return self.report(&ValueError { message, ..error });
        }
        self.report(&error);
    }

    /// Continues with a member that is missing.
    fn add_member(&mut self, error: &ValueError, field: &str) -> Option<ValueError> {
        let path = join(&error.path, &member_path(field));
        if !self.is_reported(&path) && !self.is_reported(&error.path) {
            let missing =
                ValueError { path: path.clone(), message: "is missing".to_owned(), is_whole_object: false };
            self.lines.push(missing.line(self.argument.path));
        }
        if !self.replaced.insert(path) {
            return None;
        }
        let at = TextPlaces::object(&self.text, &error.path)?;
        let is_empty = self.text.get(at..).is_some_and(|rest| rest.trim_start().starts_with('}'));
        for sample in SAMPLES {
            if self.decodes == 0 {
                return None;
            }
            let mut text = self.text.clone();
            let comma = if is_empty { "" } else { "," };
            text.insert_str(at, &format!("{}:{sample}{comma}", Value::from(field)));
            let next = self.refusal(&text);
            let is_refused = |next: &ValueError| {
                join(&error.path, &member_path(field)) == next.path
                    || (next.is_whole_object && next.path == error.path && next.message == error.message)
            };
            if !next.as_ref().is_some_and(is_refused) {
                self.text = text;
                return next;
            }
        }
        None
    }

    /// Finds what is refused in an object of which the error says no more: by formats, or value by value.
    fn look_inside(&mut self, error: ValueError) -> Option<ValueError> {
        let changed = |next: &Option<ValueError>| {
            next.as_ref().is_none_or(|next| next.path != error.path || next.message != error.message)
        };
        let formats: Vec<_> = (self.argument.formats)()
            .into_iter()
            .filter(|(path, ..)| is_within(path, &error.path) && !self.replaced.contains(path))
            .collect();
        if !formats.is_empty() {
            let mut text = self.text.clone();
            for (path, expected, _) in &formats {
                if let Some(range) = TextPlaces::scalar(&text, path) {
                    text.replace_range(range, sample_of(expected));
                }
            }
            if self.decodes == 0 {
                // formats are what such types parse
                self.lines.extend(formats.into_iter().map(|(_, _, line)| line));
                return None;
            }
            let next = self.refusal(&text);
            if changed(&next) {
                for (path, _, line) in formats {
                    // a type may accept more than its format
                    let with_own = TextPlaces::scalar(self.argument.json, &path)
                        .zip(TextPlaces::scalar(&text, &path))
                        .and_then(|(own, range)| {
                            let mut text = text.clone();
                            text.replace_range(range, self.argument.json.get(own)?);
                            Some(text)
                        });
                    if with_own.is_none_or(|text| self.decodes == 0 || self.refusal(&text).is_some())
                        && !self.is_reported(&path)
                    {
                        self.lines.push(line);
                    }
                    self.replaced.insert(path);
                }
                self.text = text;
                return next;
            }
        }
        if self.decodes == 0 {
            if !self.is_reported_around(&error.path) {
                self.report_alternatives(error);
            }
            return None;
        }
        let leaves = TextPlaces::scalars(&self.text);
        let inside = leaves.into_iter().filter(|(path, _)| is_within(path, &error.path));
        let inside: Vec<_> =
            inside.filter(|(path, _)| !self.replaced.contains(path)).take(MAX_TRIED).collect();
        // what the report has is refused for sure; of the others, one that makes the rest of the object accepted
        let (reported, others): (Vec<_>, Vec<_>) =
            inside.into_iter().partition(|(path, _)| self.is_reported(path));
        for (path, range, is_certain) in reported
            .into_iter()
            .map(|(path, range)| (path, range, true))
            .chain(others.into_iter().map(|(path, range)| (path, range, false)))
        {
            let own = self.text.get(range.clone()).unwrap_or_default().to_owned();
            for sample in samples(&own) {
                if self.decodes == 0 {
                    break;
                }
                let mut text = self.text.clone();
                text.replace_range(range.clone(), sample);
                let next = self.refusal(&text);
                let is_accepted = match &next {
                    None => true,
                    Some(next) if next.path != error.path => !is_within(&next.path, &path),
                    Some(next) => {
                        is_certain && next.message != error.message && !next.message.contains("invalid type")
                    }
                };
                if !is_accepted {
                    continue;
                }
                let message = out_of_range(&own, sample)
                    .unwrap_or_else(|| format!("{} is not accepted", crate::schema::truncate(&own)));
                self.report(&ValueError { path: path.clone(), message, is_whole_object: false });
                self.replaced.insert(path);
                self.text = text;
                return next;
            }
        }
        if !self.is_reported_around(&error.path) {
            self.report_alternatives(error);
        }
        None
    }
}

/// Whether a path is that of a value, or of a part of it.
fn is_within(path: &str, value: &str) -> bool {
    path.strip_prefix(value)
        .is_some_and(|rest| value.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

fn join(parent: &str, path: &str) -> String {
    let dot = if parent.is_empty() || path.is_empty() || path.starts_with('[') { "" } else { "." };
    format!("{parent}{dot}{path}")
}

/// The member that a struct lacks, in the words of serde.
fn missing_field(error: &ValueError) -> Option<String> {
    let (_, rest) = error.message.split_once("missing field `")?;
    rest.split_once('`').filter(|_| error.is_whole_object).map(|(name, _)| name.to_owned())
}

/// Whether an untagged enum refuses a value, in the words of serde, which name the type and not what it takes.
fn is_of_alternatives(error: &ValueError) -> bool {
    error.message.contains("did not match any variant of untagged enum")
}

/// The error for an integer in whose place another integer is accepted.
fn out_of_range(own: &str, sample: &str) -> Option<String> {
    sample.parse::<i64>().ok()?;
    let number: serde_json::Number = serde_json::from_str(own).ok()?;
    let is_integer = number.is_i64() || number.is_u64() || !own.contains(['.', 'e', 'E']);
    let side = if own.starts_with('-') { "small" } else { "large" };
    is_integer.then(|| format!("{} is too {side} for an integer here", crate::schema::truncate(own)))
}

/// A value of a format, by what the schema expects.
fn sample_of(expected: &str) -> &'static str {
    let words = [
        ("a date and time", r#""2026-07-28T12:00:00Z""#),
        ("a date", r#""2026-07-28""#),
        ("a UUID", r#""67e55044-10b1-426f-9247-bb680e5fe0c8""#),
        ("a URI", r#""https://example.com/""#),
        ("an email", r#""a@example.com""#),
    ];
    words.iter().find(|(start, _)| expected.starts_with(start)).map_or(r#""""#, |(_, sample)| sample)
}
