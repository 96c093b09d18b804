//! Members of JSON that stands inside a text, such as the text of a tool's result: also if it is only a part of the text, is cut, or
//! stands in a text of that JSON again, with its quotes escaped.

use serde_json::Value;

use super::trace::MASKED;

/// The longest name of a member, in bytes.
const MAX_NAME: usize = 128;
/// Backslashes before a quote: of JSON in a text, in a text in a text and so on.
const MAX_ESCAPES: usize = 7;
/// How deep lists and objects are.
const MAX_DEPTH: usize = 32;

/// The text without the values that are masked, otherwise as it was; `None` if none is. `may_hide` says of a name whether its value
/// may be one, and `hides` decides it.
pub(super) fn without_members(
    text: &str,
    may_hide: impl Fn(&str) -> bool,
    mut hides: impl FnMut(&str, Value) -> bool,
) -> Option<String> {
    let mut shown = String::new();
    // all before is in `shown`
    let mut done = 0;
    let mut next = 0;
    while let Some(colon) = text[next..].find(':').map(|at| next + at) {
        next = colon + 1;
        let Some((name, escapes)) = name_at_end(&text[done..colon]) else { continue };
        if !may_hide(name) {
            continue;
        }
        let start = text.len() - text[next..].trim_start().len();
        let rest = &text[start..];
        let end = end_of_value(rest, escapes);
        let raw = &rest[..end.unwrap_or(rest.len())];
        let is_hidden = match end.and_then(|_| decoded(raw, escapes)) {
            Some(value) => hides(name, value),
            // it is cut, or too deep
            None => raw.starts_with(['[', '{', '"', '\\']),
        };
        if is_hidden {
            let quote = quote(escapes);
            shown.extend([&text[done..start], &quote, MASKED, &quote]);
            done = start + raw.len();
            next = done;
        }
    }
    if done == 0 {
        return None;
    }
    shown.push_str(&text[done..]);
    Some(shown)
}

fn quote(escapes: usize) -> String {
    "\\".repeat(escapes) + "\""
}

/// The name that a text ends with, in quotes, and the backslashes before each.
fn name_at_end(text: &str) -> Option<(&str, usize)> {
    let inner = text.trim_end().strip_suffix('"')?;
    let name = inner.trim_end_matches('\\');
    let escapes = inner.len() - name.len();
    if escapes > MAX_ESCAPES || !(escapes + 1).is_power_of_two() {
        return None;
    }
    let mut from = name.len().saturating_sub(MAX_NAME);
    while !name.is_char_boundary(from) {
        from += 1;
    }
    let quote = quote(escapes);
    let at = name[from..].rfind(&quote)?;
    Some((&name[from + at + quote.len()..], escapes))
}

/// The length of the value that a text begins with; `None` if it is cut or too deep.
fn end_of_value(text: &str, escapes: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if text.starts_with(&quote(escapes)) {
        return end_of_text(text, escapes);
    }
    if !text.starts_with(['[', '{']) {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c);
        let literal = &text[..text.find(is_end).unwrap_or(text.len())];
        // of a sentence
        return Some(literal.trim_end_matches('.').len());
    }
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'"' | b'\\' => {
                at += end_of_text(&text[at..], escapes)?;
                continue;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
        if depth > MAX_DEPTH {
            return None;
        }
    }
    None
}

/// The length of a text in quotes, with them.
fn end_of_text(text: &str, escapes: usize) -> Option<usize> {
    let opening = quote(escapes);
    let inner = text.strip_prefix(&opening)?;
    let mut from = 0;
    loop {
        let at = from + inner[from..].find('"')?;
        let backslashes = at - inner[from..at].trim_end_matches('\\').len() - from;
        match backslashes.checked_sub(escapes) {
            // a quote inside has more of them, in pairs of what one backslash is here
            Some(more) if more % (2 * (escapes + 1)) == 0 => return Some(opening.len() + at + 1),
            Some(_) => from = at + 1,
            // the text around it ends
            None => return None,
        }
    }
}

/// A value as it is written inside texts.
fn decoded(raw: &str, escapes: usize) -> Option<Value> {
    let mut text = raw.to_owned();
    for _ in 0..(escapes + 1).ilog2() {
        text = serde_json::from_str(&format!("\"{text}\"")).ok()?;
    }
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(text: &str) -> Option<String> {
        without_members(
            text,
            |name| name == "p" || name == "list",
            |name, value| name == "p" || value.is_array(),
        )
    }

    #[test]
    fn a_value_is_masked_where_it_stands_and_the_rest_of_the_text_stays_as_it_is() {
        for (text, expected) in [
            (r#"{"a": 1,  "p" : "x\"y\\",  "b":2.50}"#, r#"{"a": 1,  "p" : "•••",  "b":2.50}"#),
            (r#"so: {"p":4711}, and "p": null."#, r#"so: {"p":"•••"}, and "p": "•••"."#),
            (r#"{"list":["x",["]"]],"p":{"q":"}"}}"#, r#"{"list":"•••","p":"•••"}"#),
            (r#"5" wide: {"é":"p","p":"ü"}"#, r#"5" wide: {"é":"p","p":"•••"}"#),
            // cut
            (r#"{"p":"x, "q""#, r#"{"p":"•••"q""#),
            (r#"{"p":"xyz"#, r#"{"p":"•••""#),
            (r#"{"list":["x"#, r#"{"list":"•••""#),
            (r#"{"p":{"q":"x"#, r#"{"p":"•••""#),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", ":", "\":", "\"\":", "p: x", r#"{"q":"p","pp":1,"ap":"x"}"#, "é:\"p\""] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn json_inside_texts_of_json_is_masked_at_every_level() {
        let mut text = json!({ "p": "x\\\"y", "a": "\\", "list": ["x"], "b": "\"" }).to_string();
        let mut masked = json!({ "p": MASKED, "a": "\\", "list": MASKED, "b": "\"" }).to_string();
        for level in 0..4 {
            assert_eq!(shown(&text), Some(masked.clone()), "{level}");
            (text, masked) = (json!({ "in": text }).to_string(), json!({ "in": masked }).to_string());
        }
        // no deeper
        assert_eq!(shown(&text), None);
    }

    #[test]
    fn long_texts_of_openings_take_no_longer_than_their_length() {
        for opening in [r#""list":["#, r#""p":{"#, r#""list":[["#, "\"p\"", "\\\"p\\\":", ":", "\\"] {
            let text = opening.repeat((1 << 20) / opening.len());
            let _shown = shown(&text);
        }
    }
}
