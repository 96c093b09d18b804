//! Text of servers in messages and logs: characters that a terminal, an editor or a reader of logs obeys are escaped, and
//! a line of the server is never mistaken for one of this program.

use std::fmt::{self, Write as _};

/// Text of a server, as a message shows it.
pub(in crate::client) struct ServerText<'a> {
    text: &'a str,
    line_break: &'static str,
}

/// The text with its line breaks; further lines are indented.
pub(in crate::client) fn in_lines(text: &str) -> ServerText<'_> {
    ServerText { text, line_break: "\n  " }
}

/// The text in one line.
pub(in crate::client) fn in_one_line(text: &str) -> ServerText<'_> {
    ServerText { text, line_break: "\\n" }
}

/// Whether a character does something instead of being shown.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

impl fmt::Display for ServerText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_obeyed(*c)) {
            f.write_str(rest.get(..at).unwrap_or_default())?;
            match c {
                '\n' => f.write_str(self.line_break)?,
                '\t' => f.write_char(' ')?,
                c => write!(f, "{}", c.escape_default())?,
            }
            rest = rest.get(at + c.len_utf8()..).unwrap_or_default();
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_obeyed_are_escaped_and_lines_of_the_server_are_indented() {
        let text = "a\u{1b}[2Jb\r\nERROR c\u{202e}d\u{2028}e\té";
        assert_eq!(in_lines(text).to_string(), "a\\u{1b}[2Jb\\r\n  ERROR c\\u{202e}d\\u{2028}e é");
        assert_eq!(in_one_line(text).to_string(), "a\\u{1b}[2Jb\\r\\nERROR c\\u{202e}d\\u{2028}e é");
    }
}
