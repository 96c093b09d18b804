//! The text of a value that was repaired. A `Value` has no integers beyond 64 bits: their digits come from the text
//! that the value was read from.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    error::push_key,
    tokens::{Steps, Token, Tokens},
};

/// The most integers beyond 64 bits that keep their digits.
const MAX_WIDE: usize = 1_000;

/// The repaired value of `original` as text.
pub fn rewrite(original: &str, repaired: &Value) -> String {
    let wide = wide_integers(original);
    if wide.is_empty() {
        return repaired.to_string();
    }
    let mut text = String::with_capacity(original.len());
    write_value(repaired, "", &wide, &mut text);
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

/// Integers beyond 64 bits, by path.
fn wide_integers(json: &str) -> HashMap<String, &str> {
    let mut found = HashMap::new();
    let mut steps = Steps::new(json);
    for token in Tokens::new(json) {
        if let Token::Scalar(range) = &token
            && range.len() >= 19
            && range.len() < 64
            && let Some(digits) = json.get(range.clone()).and_then(wide_digits)
        {
            found.insert(steps.path(), digits);
            if found.len() == MAX_WIDE {
                break;
            }
        }
        steps.follow(&token);
    }
    found
}

fn write_value(value: &Value, path: &str, wide: &HashMap<String, &str>, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                let mut path = path.to_owned();
                push_key(&mut path, key);
                write_value(member, &path, wide, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, &format!("{path}[{index}]"), wide, out);
            }
            out.push(']');
        }
        // a string must remain a string
        Value::Number(number) if number.is_f64() => match wide.get(path) {
            Some(digits) => out.push_str(digits),
            None => out.push_str(&value.to_string()),
        },
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
