//! Text of servers, clients and models in messages, logs and terminals: characters that a terminal, an editor or a reader of
//! logs obeys are escaped, and a line of such a text is never mistaken for one of this program. It is the only filter for that.

use std::fmt::{self, Write as _};

/// A text as it is shown.
pub(crate) struct VisibleText<'a> {
    text: &'a str,
    line_break: &'static str,
    tab: char,
}

/// The text with its lines as they are.
#[must_use]
pub fn visible(text: &str) -> String {
    VisibleText { text, line_break: "\n", tab: '\t' }.to_string()
}

/// The text with its line breaks; further lines are indented.
pub(crate) fn in_lines(text: &str) -> VisibleText<'_> {
    VisibleText { text, line_break: "\n  ", tab: ' ' }
}

/// The text in one line.
pub(crate) fn in_one_line(text: &str) -> VisibleText<'_> {
    VisibleText { text, line_break: "\\n", tab: ' ' }
}

/// The text of JSON with the same meaning.
#[must_use]
pub fn visible_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // others than line breaks are inside of strings
        if !is_obeyed(c) || c == '\n' {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    shown
}

/// Whether a character does something instead of being shown. The two that join letters are a part of words and emoji.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// The length of a change of colours at the beginning of a text: loggers write them, and they are left out.
fn length_of_colours(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
    inner.get(end..)?.starts_with('m').then_some(end + 3)
}

impl fmt::Display for VisibleText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_obeyed(*c)) {
            let (before, from) = rest.split_at(at);
            f.write_str(before)?;
            let length = match length_of_colours(from) {
                Some(length) => length,
                None if from.starts_with("\r\n") => 1,
                None => {
                    match c {
                        '\n' => f.write_str(self.line_break)?,
                        '\t' => f.write_char(self.tab)?,
                        c => write!(f, "{}", c.escape_default())?,
                    }
                    c.len_utf8()
                }
            };
            rest = from.get(length..).unwrap_or_default();
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_obeyed_are_escaped_and_lines_of_the_text_are_indented() {
        let text = "a\u{1b}[2Jb\r\nERROR c\u{202e}d\u{2028}e\té\u{9b}\r";
        assert_eq!(in_lines(text).to_string(), "a\\u{1b}[2Jb\n  ERROR c\\u{202e}d\\u{2028}e é\\u{9b}\\r");
        assert_eq!(in_one_line(text).to_string(), "a\\u{1b}[2Jb\\nERROR c\\u{202e}d\\u{2028}e é\\u{9b}\\r");
        assert_eq!(visible(text), "a\\u{1b}[2Jb\nERROR c\\u{202e}d\\u{2028}e\té\\u{9b}\\r");
        let json = serde_json::json!({ "a": text, "\u{e0041}": "\u{1b}]52;c;eA==\u{7}" });
        for written in [json.to_string(), format!("{json:#}")] {
            let shown = visible_json(&written);
            assert!(!shown.chars().any(|c| is_obeyed(c) && c != '\n'), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
        }
    }

    #[test]
    fn colours_are_left_out_and_make_no_other_sequence() {
        assert_eq!(visible("\u{1b}[1;32mINFO\u{1b}[0m x\u{1b}[m"), "INFO x");
        assert_eq!(visible("\u{1b}\u{1b}[0m[2J\u{1b}[31"), "\\u{1b}[2J\\u{1b}[31");
        assert_eq!(visible("👩\u{200d}💻 می\u{200c}خواهم"), "👩\u{200d}💻 می\u{200c}خواهم");
    }
}
