//! One form for all texts of a JSON value, to compare them by their bytes.

use std::{borrow::Cow, ops::Range};

use serde_json::Value;

use super::{
    sort::sort_by,
    tokens::{Token, Tokens},
};

/// Levels of nested values that are brought into the form; deeper ones count as they are written.
const MAX_DEPTH: usize = 32;

/// An array or an object that is being written: where it begins in the output, and for an object its members by key, as
/// ranges of the output.
type OpenValue = (usize, Option<Vec<(String, Range<usize>)>>);

/// One text for equal JSON values: keys sorted, no whitespace, numbers by value. Takes one pass over the text, since a client
/// may send any.
pub fn canonical(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut open: Vec<OpenValue> = Vec::new();
    let end_value = |open: &mut Vec<OpenValue>, out: &mut String| match open.last_mut() {
        Some((_, Some(members))) => {
            if let Some((_, range)) = members.last_mut() {
                range.end = out.len();
            }
        }
        Some((_, None)) => out.push(','),
        None => {}
    };
    let mut tokens = Tokens::new(json);
    while let Some(token) = tokens.next() {
        match token {
            Token::Open { at, .. } if open.len() == MAX_DEPTH => {
                let end = skip_value(&mut tokens);
                out.push_str(json.get(at..end).unwrap_or_default());
                end_value(&mut open, &mut out);
            }
            Token::Open { is_object: true, .. } => open.push((out.len(), Some(Vec::new()))),
            Token::Open { is_object: false, .. } => {
                open.push((out.len(), None));
                out.push('[');
            }
            Token::Key { range, .. } => {
                let raw = json.get(range).unwrap_or_default();
                let key = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
                if let Some((_, Some(members))) = open.last_mut() {
                    members.push((key, out.len()..out.len()));
                }
            }
            Token::Close { .. } => {
                match open.pop() {
                    Some((start, Some(mut members))) => {
                        // of equal keys the last counts
                        sort_by(&mut members, |(one, _), (other, _)| one.cmp(other));
                        let values = out.split_off(start);
                        out.push('{');
                        for (key, range) in members {
                            write_string(&mut out, &key);
                            out.push(':');
                            let value = values.get(range.start - start..range.end - start);
                            out.push_str(value.unwrap_or_default());
                            out.push(',');
                        }
                        out.push('}');
                    }
                    _ => out.push(']'),
                }
                end_value(&mut open, &mut out);
            }
            Token::Scalar(range) => {
                let raw = json.get(range).unwrap_or_default();
                match raw.as_bytes().first() {
                    Some(b'"') => match serde_json::from_str::<String>(raw) {
                        Ok(text) => write_string(&mut out, &text),
                        Err(_) => out.push_str(raw),
                    },
                    Some(b'-' | b'0'..=b'9') => out.push_str(&number(raw)),
                    _ => out.push_str(raw),
                }
                end_value(&mut open, &mut out);
            }
            Token::Comma => {}
        }
    }
    out
}

fn write_string(out: &mut String, text: &str) {
    out.push_str(&Value::from(text).to_string());
}

/// Where the array or object ends whose opening token was the last one.
fn skip_value(tokens: &mut Tokens<'_>) -> usize {
    let mut depth = 1;
    for token in tokens {
        match token {
            Token::Open { .. } => depth += 1,
            Token::Close { end, .. } => {
                depth -= 1;
                if depth == 0 {
                    return end;
                }
            }
            _ => {}
        }
    }
    0
}

/// A number as its significant digits and the power of ten of the last one, which are the same for `1`, `1.0` and `1e0`.
fn number(json: &str) -> Cow<'_, str> {
    let (sign, magnitude) = json.strip_prefix('-').map_or(("", json), |magnitude| ("-", magnitude));
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    // of the last digit that is written; that of the last significant one is higher by the zeros after it
    let last = exponent.parse::<i64>().ok().and_then(|e| e.checked_sub_unsigned(fraction.len() as u64));
    let last = last.and_then(|last| last.checked_add_unsigned((digits.len() - significant.len()) as u64));
    match (significant.trim_start_matches('0'), last) {
        ("", _) => Cow::Borrowed("0"),
        (significant, Some(last)) => Cow::Owned(format!("{sign}{significant}e{last}")),
        // no two programs agree on the value of such a number
        (_, None) => Cow::Borrowed(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_json_values_have_equal_bytes() {
        let same = [
            (r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true , null ], \"a\" : 1.0 } "),
            (r#"{"a":"é"}"#, r#"{"\u0061":"\u00e9"}"#),
            ("[0]", "[-0]"),
            ("[100]", "[1e2]"),
            ("{}", " {} "),
            (r#"{"b":[{"d":{},"c":[]}],"a":0}"#, r#"{"a":0,"b":[{"c":[],"d":{}}]}"#),
            ("[-0.0e5, 0.10, -12.50e1, 1e-3]", "[0,1e-1,-125,0.001]"),
            ("[1E+21, 0.0001234e+6]", "[1000000000000000000000,123.4]"),
        ];
        for (one, other) in same {
            assert_eq!(canonical(one), canonical(other));
        }
        let different = [
            ("[1]", "[2]"),
            ("[1]", "[-1]"),
            ("[10]", "[0.1]"),
            ("[1.5]", "[15]"),
            ("[1]", r#"["1"]"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            ("[1,2]", "[2,1]"),
        ];
        for (one, other) in different {
            assert_ne!(canonical(one), canonical(other));
        }
        let (one, other) = ("[100000000000000000000000001]", "[100000000000000000000000002]");
        assert_ne!(canonical(one), canonical(other));
        // neither grows with its exponent
        for huge in ["[1e999999999]", "[1e-99999999999999999999]"] {
            assert!(canonical(huge).len() <= huge.len() + 1);
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(canonical(&deep).matches('[').count(), 100_000);
        let objects = format!("{}1{}", "{\"b\":0,\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(canonical(&objects).matches('{').count(), 100_000);
    }
}
