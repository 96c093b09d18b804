//! What is wrong with a value, where, and how to say so to a model.

use std::fmt;

use serde_json::Value;

/// One place where a value does not conform to a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Where, as in `items[2].price`; empty for the root.
    pub(crate) path: String,
    /// What the schema asks for, as in `an integer`.
    pub(crate) expected: String,
    /// What came instead, shortened.
    pub(crate) found: String,
    /// The sentence without the path.
    message: String,
}

impl Violation {
    pub(super) fn new(path: &Path<'_>, expected: String, found: String, message: String) -> Self {
        Self { path: path.to_string(), expected, found, message }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The way from the root of a value to one of its nodes, kept on the stack while walking.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => {
                let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                if key.is_empty() || !key.chars().all(plain) {
                    return write!(f, "{parent}[{}]", shortened(&Value::from(*key)));
                }
                let dot = if matches!(parent, Self::Root) { "" } else { "." };
                write!(f, "{parent}{dot}{}", shorten(key))
            }
        }
    }
}

/// The path of a member of the root.
pub(crate) fn path_of(name: &str) -> String {
    Path::Key(&Path::Root, name).to_string()
}

/// A value as a message shows it: scalars as JSON, cut to a readable length; the rest by kind.
pub(super) fn shortened(value: &Value) -> String {
    match value {
        Value::Array(items) => match items.len() {
            0 => "an empty array".to_owned(),
            1 => "an array of 1 item".to_owned(),
            count => format!("an array of {count} items"),
        },
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > LONGEST => {
            let mut cut = Value::from(shorten(text)).to_string();
            cut.truncate(cut.len() - 1);
            cut + "…\""
        }
        _ => value.to_string(),
    }
}

const LONGEST: usize = 60;

/// A text cut to a readable length, between characters.
pub(crate) fn shorten(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_read_like_code() {
        let items = Path::Key(&Path::Root, "items");
        let second = Path::Index(&items, 2);
        assert_eq!(Path::Root.to_string(), "");
        assert_eq!(Path::Key(&second, "price").to_string(), "items[2].price");
        assert_eq!(Path::Key(&second, "a b").to_string(), "items[2][\"a b\"]");
        assert_eq!(Path::Index(&Path::Root, 0).to_string(), "[0]");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = json!("é".repeat(100));
        let shown = shortened(&long);
        assert!(shown.starts_with("\"éé") && shown.ends_with("é…\""), "{shown}");
        assert_eq!(shown.chars().filter(|c| *c == 'é').count(), 30);
        assert_eq!(shortened(&json!([1, 2])), "an array of 2 items");
        assert_eq!(shortened(&json!(null)), "null");
    }
}
