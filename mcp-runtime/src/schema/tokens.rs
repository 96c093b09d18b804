//! The tokens of JSON text that a parser has accepted, for questions that need neither values nor recursion. Text that
//! is not valid gives some tokens, and never a panic.

use std::{borrow::Cow, ops::Range};

use super::error::push_key;

/// Whether a text has more values than this, counting those of JSON in its strings; at most as many as it has commas and
/// opening brackets.
pub(crate) fn has_more_values(json: &str, most: usize) -> bool {
    json.len() > most && memchr::memchr3_iter(b',', b'[', b'{', json.as_bytes()).nth(most).is_some()
}

/// How many commas and opening brackets a text has: at least as many as it has values, beside one.
pub(crate) fn count_values(json: &str) -> usize {
    memchr::memchr3_iter(b',', b'[', b'{', json.as_bytes()).count() + 1
}

/// Whether a text has more values than this; a string is one value, whatever is in it.
pub(crate) fn consists_of_more_values(json: &str, most: usize) -> bool {
    has_more_values(json, most)
        && Tokens::new(json)
            .filter(|token| matches!(token, Token::Comma | Token::Open { .. }))
            .nth(most)
            .is_some()
}

/// A token, with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// `{` or `[`
    Open {
        at: usize,
        is_object: bool,
    },
    /// `}` or `]`, and where it ends.
    Close {
        end: usize,
        is_object: bool,
    },
    Comma,
    /// A key with its quotes.
    Key {
        range: Range<usize>,
        is_escaped: bool,
    },
    /// A string, a number, `true`, `false` or `null`.
    Scalar(Range<usize>),
}

/// Iterates over the tokens of a text.
pub(crate) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(json: &'a str) -> Self {
        Self { text: json.as_bytes(), at: 0 }
    }

    /// Moves behind the closing quote of a string; returns whether the string has escapes.
    fn skip_string(&mut self) -> bool {
        let mut is_escaped = false;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            match memchr::memchr2(b'"', b'\\', rest) {
                Some(found) if rest.get(found) == Some(&b'"') => {
                    self.at += found + 1;
                    return is_escaped;
                }
                Some(found) => {
                    is_escaped = true;
                    self.at += found + 2;
                }
                None => {
                    self.at = self.text.len();
                    return is_escaped;
                }
            }
        }
    }

    fn is_space(&self, at: usize) -> bool {
        matches!(self.text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r'))
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.at;
            let byte = *self.text.get(start)?;
            self.at += 1;
            return Some(match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b':' => continue,
                b',' => Token::Comma,
                b'{' | b'[' => Token::Open { at: start, is_object: byte == b'{' },
                b'}' | b']' => Token::Close { end: self.at, is_object: byte == b'}' },
                b'"' => {
                    let is_escaped = self.skip_string();
                    let range = start..self.at;
                    while self.is_space(self.at) {
                        self.at += 1;
                    }
                    // only keys are followed by a colon
                    if self.text.get(self.at) == Some(&b':') {
                        Token::Key { range, is_escaped }
                    } else {
                        Token::Scalar(range)
                    }
                }
                _ => {
                    while !self.is_space(self.at)
                        && !matches!(self.text.get(self.at), None | Some(b',' | b'}' | b']'))
                    {
                        self.at += 1;
                    }
                    Token::Scalar(start..self.at)
                }
            });
        }
    }
}

/// The key that a range with quotes denotes.
pub(super) fn decode_key<'a>(json: &'a str, range: &Range<usize>, is_escaped: bool) -> Cow<'a, str> {
    let raw = json.get(range.clone()).unwrap_or_default();
    if is_escaped && let Ok(key) = serde_json::from_str(raw) {
        return Cow::Owned(key);
    }
    Cow::Borrowed(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default())
}

/// Where a walk over tokens is: one step into each open array and object.
pub(super) struct Steps<'a> {
    json: &'a str,
    open: Vec<Step>,
}

enum Step {
    /// In an object, before its first key.
    Object,
    Key(Range<usize>, bool),
    Index(usize),
}

impl<'a> Steps<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self { json, open: Vec::new() }
    }

    /// Follows the walk over the next token.
    pub(super) fn follow(&mut self, token: &Token) {
        match token {
            Token::Open { is_object: true, .. } => self.open.push(Step::Object),
            Token::Open { is_object: false, .. } => self.open.push(Step::Index(0)),
            Token::Close { .. } => drop(self.open.pop()),
            Token::Comma => {
                if let Some(Step::Index(index)) = self.open.last_mut() {
                    *index += 1;
                }
            }
            Token::Key { range, is_escaped } => {
                if let Some(last) = self.open.last_mut() {
                    *last = Step::Key(range.clone(), *is_escaped);
                }
            }
            Token::Scalar(_) => {}
        }
    }

    /// The path from the root, as in `items[2].price`.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.open {
            match step {
                Step::Object => {}
                Step::Key(range, is_escaped) => {
                    push_key(&mut path, &decode_key(self.json, range, *is_escaped));
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}

/// Where the values of a text are, by their paths.
pub(crate) struct TextPlaces;

impl TextPlaces {
    /// Every scalar, with its path.
    pub(crate) fn scalars(json: &str) -> Vec<(String, Range<usize>)> {
        let mut found = Vec::new();
        let mut steps = Steps::new(json);
        for token in Tokens::new(json) {
            if let Token::Scalar(range) = &token {
                found.push((steps.path(), range.clone()));
            }
            steps.follow(&token);
        }
        found
    }

    /// The scalar at a path.
    pub(crate) fn scalar(json: &str, path: &str) -> Option<Range<usize>> {
        Self::scalars(json).into_iter().find_map(|(found, range)| (found == path).then_some(range))
    }

    /// Where the first member of the object at a path begins.
    pub(crate) fn object(json: &str, path: &str) -> Option<usize> {
        let mut steps = Steps::new(json);
        for token in Tokens::new(json) {
            if let Token::Open { at, is_object: true } = &token
                && steps.path() == path
            {
                return Some(at + 1);
            }
            steps.follow(&token);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(json: &str) -> Vec<String> {
        let slice = |range: Range<usize>| json[range].to_owned();
        Tokens::new(json)
            .map(|token| match token {
                Token::Open { is_object, .. } => if is_object { "{" } else { "[" }.to_owned(),
                Token::Close { is_object, .. } => if is_object { "}" } else { "]" }.to_owned(),
                Token::Comma => ",".to_owned(),
                Token::Key { range, .. } => slice(range) + ":",
                Token::Scalar(range) => slice(range),
            })
            .collect()
    }

    #[test]
    fn every_token_is_found_with_and_without_spaces() {
        let json = r#" { "a\"b" : [ 1 , -2.5e3,true ],"c":{"":null}, "d": "x:\\" } "#;
        let tokens = texts(json);
        let expected = [
            "{",
            r#""a\"b":"#,
            "[",
            "1",
            ",",
            "-2.5e3",
            ",",
            "true",
            "]",
            ",",
            "\"c\":",
            "{",
            "\"\":",
            "null",
            "}",
            ",",
            "\"d\":",
            r#""x:\\""#,
            "}",
        ];
        assert_eq!(tokens, expected);
    }

    #[test]
    fn text_that_is_not_json_gives_some_tokens() {
        for text in ["", "\"", "\"\\", "{\"a", "{]}", "\\", "a:b", "\u{e9}\"\u{e9}"] {
            let mut steps = Steps::new(text);
            for token in Tokens::new(text) {
                steps.follow(&token);
                steps.path();
            }
        }
    }
}
