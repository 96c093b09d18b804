//! The tokens of JSON text that a parser has accepted, for questions that need neither values nor recursion. Text that
//! is not valid gives some tokens, and never a panic.

use std::{borrow::Cow, ops::Range};

use super::error::PathText;

/// How many commas and opening brackets a text has, those in its strings as well: at least as many as it has values, beside one.
pub fn count_values(json: &str) -> usize {
    json.as_bytes().chunks(BLOCK).map(count_in).sum::<usize>() + 1
}

/// The bytes that are counted at a time.
const BLOCK: usize = 1024;

/// How many commas and opening brackets a block has. Parts whose count fits into a byte are compiled to vector instructions.
fn count_in(block: &[u8]) -> usize {
    // a long text has blocks without any
    if memchr::memchr3(b',', b'[', b'{', block).is_none() {
        return 0;
    }
    // the two brackets differ in one bit
    let is_counted = |byte: u8| (byte == b',') | (byte | 0x20 == b'{');
    let count =
        |part: &[u8]| part.iter().fold(0_u8, |count, byte| count.wrapping_add(is_counted(*byte).into()));
    block.chunks(128).map(|part| usize::from(count(part))).sum()
}

/// Whether a text has more values than this; a string is one value, whatever is in it.
pub fn consists_of_more_values(json: &str, most: usize) -> bool {
    count_values(json) > most
        && Tokens::new(json)
            .filter(|token| matches!(token, Token::Comma | Token::Open { .. }))
            .nth(most)
            .is_some()
}

/// A token, with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// `{` or `[`
    Open {
        /// Its place.
        at: usize,
        /// Whether it is `{`.
        is_object: bool,
    },
    /// `}` or `]`
    Close {
        /// Where it ends.
        end: usize,
        /// Whether it is `}`.
        is_object: bool,
    },
    /// `,`
    Comma,
    /// A key.
    Key {
        /// Where it is, with its quotes.
        range: Range<usize>,
        /// Whether it has escapes.
        is_escaped: bool,
    },
    /// A string, a number, `true`, `false` or `null`.
    Scalar(Range<usize>),
}

/// Iterates over the tokens of a text.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Of a JSON text.
    pub(super) fn new(json: &'a str) -> Self {
        Self { text: json.as_bytes(), at: 0 }
    }
}

fn is_space(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r'))
}

/// Where a string ends, behind its closing quote, and whether it has escapes; `at` is behind its opening quote.
fn string_end(text: &[u8], mut at: usize) -> (usize, bool) {
    // most strings are shorter
    let near = at + 16;
    let mut is_escaped = false;
    loop {
        match text.get(at) {
            Some(b'"') => return (at + 1, is_escaped),
            Some(b'\\') => {
                is_escaped = true;
                at += 2;
            }
            Some(_) if at < near => at += 1,
            Some(_) => match memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
                Some(found) => at += found,
                None => return (text.len(), is_escaped),
            },
            None => return (text.len(), is_escaped),
        }
    }
}

/// Whether a string that ends here is a key: only those are followed by a colon.
fn is_key(text: &[u8], mut end: usize) -> bool {
    while is_space(text, end) {
        end += 1;
    }
    text.get(end) == Some(&b':')
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
                    let (end, is_escaped) = string_end(self.text, self.at);
                    self.at = end;
                    if is_key(self.text, end) {
                        Token::Key { range: start..end, is_escaped }
                    } else {
                        Token::Scalar(start..end)
                    }
                }
                _ => {
                    while !is_space(self.text, self.at)
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
    /// The path as far as it was asked for.
    path: PathText,
}

enum Step {
    /// In an object, before its first key.
    Object,
    Key(Range<usize>, bool),
    Index(usize),
}

impl<'a> Steps<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self { json, open: Vec::new(), path: PathText::default() }
    }

    /// Follows the walk over the next token.
    pub(super) fn follow(&mut self, token: &Token) {
        match token {
            Token::Open { is_object: true, .. } => self.open.push(Step::Object),
            Token::Open { is_object: false, .. } => self.open.push(Step::Index(0)),
            Token::Close { .. } => {
                self.open.pop();
                self.path.keep(self.open.len());
            }
            Token::Comma => {
                if let Some(Step::Index(index)) = self.open.last_mut() {
                    *index += 1;
                    self.path.keep(self.open.len() - 1);
                }
            }
            Token::Key { range, is_escaped } => {
                if let Some(last) = self.open.last_mut() {
                    *last = Step::Key(range.clone(), *is_escaped);
                    self.path.keep(self.open.len() - 1);
                }
            }
            Token::Scalar(_) => {}
        }
    }

    /// The path from the root, as in `items[2].price`. The steps that it shares with the path before are not made again.
    pub(super) fn path(&mut self) -> &str {
        for step in self.open.get(self.path.count()..).unwrap_or_default() {
            match step {
                Step::Object => self.path.push(""),
                Step::Key(range, is_escaped) => {
                    self.path.push_key(&decode_key(self.json, range, *is_escaped));
                }
                Step::Index(index) => self.path.push_index(*index),
            }
        }
        self.path.as_str()
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
    fn values_are_counted_by_their_separators() {
        let ones = format!("[{}]", vec!["1"; 5000].join(","));
        assert_eq!(count_values(&ones), 5001);
        let text = format!("{{\"a\":\"{}\"}}", "[,{".repeat(5000));
        assert_eq!(count_values(&text), 15_002);
        assert!(!consists_of_more_values(&text, 1) && consists_of_more_values(&ones, 4999));
    }

    #[test]
    fn a_step_is_written_again_only_where_it_changes() {
        let json = r#"{"a":[1,{"b":2,"c d":[3]}],"e":4}"#;
        let mut steps = Steps::new(json);
        let mut paths = Vec::new();
        for token in Tokens::new(json) {
            steps.follow(&token);
            if let Token::Scalar(_) = token {
                paths.push(steps.path().to_owned());
            }
        }
        assert_eq!(paths, ["a[0]", "a[1].b", "a[1][\"c d\"][0]", "e"]);
        // in any order of questions
        let mut steps = Steps::new(json);
        Tokens::new(json).take(7).for_each(|token| steps.follow(&token));
        assert_eq!(steps.path(), "a[1].b");
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
