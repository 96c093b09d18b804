//! Validation errors: where a value does not conform, and the message that a model reads.

use std::fmt;

use serde_json::{Number, Value};

use super::number::IntegerType;

/// One place where a value does not conform to a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationError {
    /// The path to it, as in `items[2].price`; empty for the root.
    pub path: String,
    /// The value that the schema expects, as in `an integer`.
    pub expected: String,
    /// What a report can say more about.
    pub kind: ErrorKind,
    /// The message without the path.
    pub message: String,
}

/// The kind of an error, where a report says more than its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A required member is absent.
    Missing,
    /// A number is not one of an integer type.
    NotOfType(IntegerType),
    /// Any other.
    Other,
}

impl ValidationError {
    pub(super) fn new(path: String, mismatch: Mismatch) -> Self {
        let Mismatch { expected, message, kind } = mismatch;
        Self { path, expected, kind, message }
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// A validation error without its path.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) expected: String,
    pub(super) message: String,
    pub(super) kind: ErrorKind,
}

impl Mismatch {
    pub(super) fn new(expected: impl Into<String>, message: impl Into<String>) -> Self {
        Self { expected: expected.into(), message: message.into(), kind: ErrorKind::Other }
    }

    /// The mismatch of a required member that is absent.
    pub(super) fn missing(expected: String) -> Self {
        let message = format!("is missing ({expected})");
        Self { expected, message, kind: ErrorKind::Missing }
    }

    /// The mismatch of a number that an integer type does not hold.
    pub(super) fn of_integer(number: &Number, integer: IntegerType) -> Self {
        let message = integer.refusal(&number.to_string());
        Self { expected: integer.to_string(), message, kind: ErrorKind::NotOfType(integer) }
    }
}

/// A step from a value to one in it.
#[derive(Debug, Clone, Copy)]
pub(super) enum PathStep<'a> {
    Key(&'a str),
    Index(usize),
}

/// The path that begins at the root of a value, as in `items[2].price`.
pub(super) fn path_text(steps: &[PathStep<'_>]) -> String {
    let mut path = PathText::default();
    for step in steps {
        match step {
            PathStep::Key(key) => path.push_key(key),
            PathStep::Index(index) => path.push_index(*index),
        }
    }
    path.text
}

/// The longest path in a report, in bytes. Its steps are those of the outermost values.
const MAX_PATH_BYTES: usize = 1000;

/// A path that is written step by step. A step costs as much as is shown of it, however long its key is, and a step that
/// stays is not written again.
#[derive(Debug, Default)]
pub(super) struct PathText {
    text: String,
    /// Where each step begins.
    starts: Vec<usize>,
}

impl PathText {
    /// Appends the step to a member.
    pub(super) fn push_key(&mut self, key: &str) {
        let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let shown = truncate(key);
        if shown.is_empty() || !shown.chars().all(is_plain) {
            self.push(&format!("[{}]", quote(key)));
        } else if self.text.is_empty() {
            self.push(shown);
        } else {
            self.push(&format!(".{shown}"));
        }
    }

    /// Appends the step to an item.
    pub(super) fn push_index(&mut self, index: usize) {
        self.push(&format!("[{index}]"));
    }

    /// Appends a step that is written already.
    pub(super) fn push(&mut self, step: &str) {
        self.starts.push(self.text.len());
        // no step ends with it
        if !self.text.ends_with('…') {
            let fits = self.text.len() + step.len() <= MAX_PATH_BYTES;
            self.text.push_str(if fits { step } else { "…" });
        }
    }

    /// Keeps the first `count` steps.
    pub(super) fn keep(&mut self, count: usize) {
        if let Some(start) = self.starts.get(count) {
            self.text.truncate(*start);
            self.starts.truncate(count);
        }
    }

    /// How many steps it has.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// The path of a member of the root.
pub fn member_path(name: &str) -> String {
    path_text(&[PathStep::Key(name)])
}

/// A value for use in a message: scalars as JSON, truncated to a readable length; arrays and objects in words.
pub(super) fn summarize(value: &Value) -> String {
    match value {
        Value::Array(items) => match items.len() {
            0 => "an empty array".to_owned(),
            1 => "an array of 1 item".to_owned(),
            count => format!("an array of {count} items"),
        },
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => quote(text),
        _ => value.to_string(),
    }
}

/// A text for use in a message: as JSON, truncated to a readable length.
pub(super) fn quote(text: &str) -> String {
    let shown = truncate(text);
    let mut quoted = Value::from(shown).to_string();
    if shown.len() < text.len() {
        quoted.truncate(quoted.len() - 1);
        quoted.push_str("…\"");
    }
    quoted
}

/// The message of an error without its position, which refers to text that the client does not see.
pub fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.line() > 0
        && let Some(at) = text.rfind(" at line ")
    {
        text.truncate(at);
    }
    if matches!(&*text, "unexpected end of hex escape" | "lone leading surrogate in hex escape") {
        return "a text has half of a character, such as `\\ud83d` alone; send all of it, or leave it out"
            .to_owned();
    }
    text
}

const MAX_TEXT_BYTES: usize = 60;

/// The start of a text, of a readable length, cut between characters.
pub fn truncate(text: &str) -> &str {
    beginning(text, MAX_TEXT_BYTES)
}

/// The start of a text, of so many bytes at most, cut between characters.
pub fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_written_like_code() {
        let item = |key| path_text(&[PathStep::Key("items"), PathStep::Index(2), PathStep::Key(key)]);
        assert_eq!(path_text(&[]), "");
        assert_eq!(item("price"), "items[2].price");
        assert_eq!(item("a b"), "items[2][\"a b\"]");
        assert_eq!(path_text(&[PathStep::Index(0)]), "[0]");
    }

    #[test]
    fn paths_are_cut_while_they_are_written() {
        let long = "k".repeat(1 << 20);
        assert_eq!(member_path(&long), "k".repeat(MAX_TEXT_BYTES));
        assert_eq!(
            member_path(&format!("a b{long}")),
            format!("[\"a b{}…\"]", "k".repeat(MAX_TEXT_BYTES - 3))
        );
        let deep = path_text(&[PathStep::Index(0); 100_000]);
        assert!(deep.len() <= MAX_PATH_BYTES + '…'.len_utf8() && deep.starts_with("[0][0]"), "{deep}");
        assert!(deep.ends_with("[0]…"), "{deep}");
        let mut path = PathText::default();
        for step in 0..1000 {
            path.push_index(step);
        }
        path.keep(2);
        path.push_key("a");
        assert_eq!((path.as_str(), path.count()), ("[0][1].a", 3));
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = json!("é".repeat(100));
        let summary = summarize(&long);
        assert!(summary.starts_with("\"éé") && summary.ends_with("é…\""), "{summary}");
        assert_eq!(summary.chars().filter(|c| *c == 'é').count(), 30);
        assert_eq!(summarize(&json!([1, 2])), "an array of 2 items");
        assert_eq!(summarize(&json!(null)), "null");
    }
}
