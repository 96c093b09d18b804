//! The text of a value that was repaired. A `Value` has no integers beyond 64 bits: their digits come from the text
//! that the value was read from.

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;

use super::tokens::{Token, Tokens, decode_key};

/// The most integers beyond 64 bits that keep their digits.
const MAX_WIDE: usize = 1_000;

/// The repaired value of `original` as text.
pub fn rewrite(original: &str, repaired: &Value) -> String {
    let mut text = String::with_capacity(original.len());
    write_value(repaired, Wide::find(original).as_ref(), &mut text);
    text
}

/// The digits of an integer beyond 64 bits, if the text of a scalar is one or is a string of one.
pub(super) fn wide_digits(scalar: &str) -> Option<&str> {
    let digits = scalar.trim().trim_matches('"').trim();
    let number = digits.strip_prefix('-').unwrap_or(digits);
    let is_integer =
        !number.is_empty() && !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_wide = digits.parse::<i64>().is_err() && digits.parse::<u64>().is_err();
    let fits = digits.parse::<i128>().is_ok() || digits.parse::<u128>().is_ok();
    (is_integer && is_wide && fits).then_some(digits)
}

/// Where integers beyond 64 bits are in a text. Each key is read once, however many of them are below it.
enum Wide<'a> {
    Integer(&'a str),
    Members(HashMap<Cow<'a, str>, Wide<'a>>),
    Items(HashMap<usize, Wide<'a>>),
}

/// An array or object that is being read: its key or index at present, and what was found in it.
struct WideValue<'a> {
    key: Option<Cow<'a, str>>,
    index: usize,
    found: Wide<'a>,
}

impl<'a> Wide<'a> {
    fn find(json: &'a str) -> Option<Self> {
        let mut open: Vec<WideValue<'a>> = Vec::new();
        let mut count = 0;
        for token in Tokens::new(json) {
            let found = match (token, open.last_mut()) {
                (Token::Open { is_object, .. }, _) => {
                    let found =
                        if is_object { Self::Members(HashMap::new()) } else { Self::Items(HashMap::new()) };
                    open.push(WideValue { key: None, index: 0, found });
                    None
                }
                (Token::Close { .. }, _) => {
                    open.pop().map(|closed| closed.found).filter(|found| !found.is_empty())
                }
                (Token::Comma, Some(around)) => {
                    around.index += 1;
                    None
                }
                (Token::Key { range, is_escaped }, Some(around)) => {
                    around.key = Some(decode_key(json, &range, is_escaped));
                    None
                }
                (Token::Scalar(range), _) if count < MAX_WIDE && (19..64).contains(&range.len()) => {
                    let digits = json.get(range).and_then(wide_digits);
                    count += usize::from(digits.is_some());
                    digits.map(Self::Integer)
                }
                _ => None,
            };
            let Some(found) = found else { continue };
            match open.last_mut() {
                None => return Some(found),
                Some(WideValue { key, index, found: around }) => match around {
                    Self::Members(members) => drop(members.insert(key.take().unwrap_or_default(), found)),
                    Self::Items(items) => drop(items.insert(*index, found)),
                    Self::Integer(_) => {}
                },
            }
        }
        None
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Integer(_) => false,
            Self::Members(members) => members.is_empty(),
            Self::Items(items) => items.is_empty(),
        }
    }
}

fn write_value(value: &Value, wide: Option<&Wide<'_>>, out: &mut String) {
    match (value, wide) {
        (Value::Object(members), Some(Wide::Members(wide))) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_value(member, wide.get(key.as_str()), out);
            }
            out.push('}');
        }
        (Value::Array(items), Some(Wide::Items(wide))) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_value(item, wide.get(&index), out);
            }
            out.push(']');
        }
        // a string must remain a string
        (Value::Number(number), Some(Wide::Integer(digits))) if number.is_f64() => out.push_str(digits),
        _ => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_beyond_64_bits_keep_their_digits() {
        let text = r#"{"n":340282366920938463463374607431768211455,"list":[{"a b":-170141183460469231731687303715884105728}],"k":"5","s":"18446744073709551616"}"#;
        let mut value: Value = serde_json::from_str(text).expect("JSON");
        value["k"] = json!(5);
        let expected = r#"{"k":5,"list":[{"a b":-170141183460469231731687303715884105728}],"n":340282366920938463463374607431768211455,"s":"18446744073709551616"}"#;
        assert_eq!(rewrite(text, &value), expected);
        value["s"] = json!(18446744073709551616.0_f64);
        assert!(rewrite(text, &value).ends_with(r#""s":18446744073709551616}"#));
        assert_eq!(rewrite("{\"a\":1.5}", &json!({"a": 1.5})), "{\"a\":1.5}");
    }

    #[test]
    fn long_keys_that_begin_alike_keep_their_own_digits() {
        let key = "k".repeat(100);
        let text = format!(
            "{{\"{key}1\":[0,18446744073709551616],\"{key}2\":[0,18446744073709551617],\"\\u006b\":18446744073709551618}}"
        );
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let rewritten = rewrite(&text, &value);
        let whole = serde_json::from_str::<HashMap<String, Box<serde_json::value::RawValue>>>(&rewritten);
        let whole = whole.expect("an object");
        let digits = |name: &str| whole.get(name).map(|raw| raw.get().to_owned());
        assert_eq!(digits(&format!("{key}1")).as_deref(), Some("[0,18446744073709551616]"));
        assert_eq!(digits(&format!("{key}2")).as_deref(), Some("[0,18446744073709551617]"));
        assert_eq!(digits("k").as_deref(), Some("18446744073709551618"));
    }

    #[test]
    fn only_integers_between_64_and_128_bits_are_wide() {
        for wide in ["18446744073709551616", "-9223372036854775809", "\"18446744073709551616\""] {
            assert!(wide_digits(wide).is_some(), "{wide}");
        }
        for other in [
            "1",
            "-9223372036854775808",
            "18446744073709551615",
            "1e30",
            "01844674407370955161600",
            "x",
            "",
            "-",
        ] {
            assert_eq!(wide_digits(other), None, "{other}");
        }
        assert_eq!(wide_digits("340282366920938463463374607431768211456"), None);
    }
}
