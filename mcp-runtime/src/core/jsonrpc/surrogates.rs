//! Halves of surrogate pairs in JSON text, such as `"\ud83d"`: programs in JavaScript, Java and C# write them when they cut
//! a text within a character. Rust has no such text.

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;
use serde::Serialize;

/// `json` with the replacement character in place of each half of a surrogate pair; everything else as it is, also where it
/// is not valid JSON. Costs a search for `\` in most texts, and for `\u` in one without any.
pub(crate) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));
    if memchr::memchr(b'\\', json.as_bytes()).is_none() || ESCAPE.find(json.as_bytes()).is_none() {
        return json.into();
    }
    let (mut replaced, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', json.get(at..).unwrap_or_default().as_bytes()) {
        at += found;
        let Some(unit) = unit_at(json, at) else {
            // the next character is escaped, and begins no escape itself
            at += 1 + json.get(at + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            continue;
        };
        let is_pair =
            matches!(unit, 0xd800..=0xdbff) && matches!(unit_at(json, at + 6), Some(0xdc00..=0xdfff));
        if matches!(unit, 0xd800..=0xdfff) && !is_pair {
            replaced.push_str(json.get(copied..at).unwrap_or_default());
            replaced.push_str("\\ufffd");
            copied = at + 6;
        }
        at += if is_pair { 12 } else { 6 };
    }
    if copied == 0 {
        return json.into();
    }
    replaced.push_str(json.get(copied..).unwrap_or_default());
    replaced.into()
}

/// A value as JSON in which no text has half of a surrogate pair: a value that holds JSON of others may.
///
/// # Errors
/// It has no JSON form.
pub(crate) fn legible_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    Ok(match replace_lone_surrogates(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(replaced) => replaced,
    })
}

/// The code unit of an escape `\uXXXX` that begins there.
fn unit_at(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_of_pairs_are_replaced() {
        for (json, expected) in [
            (r#""tea""#, r#""tea""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
            // an escaped backslash, and text that ends too early
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud83"#, r#""\ud83"#),
            ("\"\\\u{e9}\\ud83d", "\"\\\u{e9}\\ufffd"),
            (r"\u", r"\u"),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected);
        }
        let Cow::Borrowed(_) = replace_lone_surrogates(r#""\u0041""#) else { panic!("it is copied") };
    }
}
