//! Compares `Mcp-Param-*` headers with the arguments that they repeat, so that a gateway that reads the headers and
//! this server act on the same values.
//!
//! See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).

use std::{borrow::Cow, collections::HashMap};

use http::HeaderMap;
use serde_json::value::RawValue;

use super::headers::{PARAM_PREFIX, decode_value, header_mismatch};
use crate::{
    core::{
        connection::HeaderParam,
        jsonrpc::{ProtocolError, decode_string},
    },
    schema::has_duplicate_keys,
};

/// Checks the headers that repeat a tool's arguments.
pub(super) fn check_header_params(
    params: &[HeaderParam],
    arguments: Option<&RawValue>,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    let members = arguments.map(parse_object).unwrap_or_default();
    for param in params {
        let HeaderParam { header, path, is_integer, .. } = param;
        let sent = headers.get(format!("{PARAM_PREFIX}{header}"));
        match (sent, value_at(&members, param)?) {
            (_, Some(value)) if *is_integer && !is_exact(value) => {
                return Err(header_mismatch(format!(
                    "`{}` is mirrored into a header, so it must be within ±{MAX_EXACT_INTEGER}",
                    path.join(".")
                )));
            }
            (None, None) => {}
            (Some(sent), Some(value)) => {
                let Some(sent) = decode_value(sent) else {
                    return Err(header_mismatch(format!("`Mcp-Param-{header}` is not a valid header value")));
                };
                if !header_equals(&sent, value) {
                    let argument = path.join(".");
                    return Err(header_mismatch(format!(
                        "`Mcp-Param-{header}` is not the argument `{argument}`"
                    )));
                }
            }
            (None, Some(value)) if value.get().starts_with(['{', '[']) => {
                // cannot be repeated in a header: reported as an argument error, which the model sees
            }
            (None, Some(_)) => return Err(header_mismatch(format!("`Mcp-Param-{header}` is missing"))),
            (Some(_), None) => {
                return Err(header_mismatch(format!(
                    "`Mcp-Param-{header}` is sent, but the argument `{}` is not",
                    path.join(".")
                )));
            }
        }
    }
    Ok(())
}

type RawMembers<'a> = HashMap<String, &'a RawValue>;

fn parse_object(object: &RawValue) -> RawMembers<'_> {
    serde_json::from_str(object.get()).unwrap_or_default()
}

/// The argument that is mirrored into a header; `null` counts as absent.
fn value_at<'a>(
    arguments: &RawMembers<'a>,
    HeaderParam { header, path, coerced, .. }: &HeaderParam,
) -> Result<Option<&'a RawValue>, ProtocolError> {
    let Some((first, rest)) = path.split_first() else { return Ok(None) };
    let present = |raw: &&RawValue| raw.get() != "null";
    let mut value = arguments.get(first.as_str()).copied().filter(present);
    for (name, is_coerced) in rest.iter().zip(coerced) {
        // text that is coerced to an object later, so that its members cannot be compared here
        if *is_coerced && value.and_then(decode_string).is_some_and(|text| is_object(&text)) {
            let argument = path.join(".");
            return Err(header_mismatch(format!(
                "`Mcp-Param-{header}` cannot be compared with `{argument}`"
            )));
        }
        value = value.and_then(|raw| parse_object(raw).get(name.as_str()).copied()).filter(present);
    }
    Ok(value)
}

/// Whether text is that of an object, which is read where the schema has one.
fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object())
        && !has_duplicate_keys(text)
}

/// The largest integer up to which an `f64`, and so every reader of a header, represents all integers.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Whether every reader represents a number exactly, or text that is coerced to one; true of everything else.
fn is_exact(value: &RawValue) -> bool {
    let text = decode_string(value).unwrap_or(Cow::Borrowed(value.get()));
    let number: Result<f64, _> = text.trim().parse();
    number.map_or(true, |number| !number.is_finite() || number.abs() <= MAX_EXACT_INTEGER)
}

/// Whether a header's value equals an argument: strings exactly, numbers by value.
fn header_equals(sent: &[u8], value: &RawValue) -> bool {
    if let Some(text) = decode_string(value) {
        return sent == text.as_bytes();
    }
    let json = value.get();
    match json.as_bytes().first() {
        Some(b't' | b'f') => sent == json.as_bytes(),
        Some(b'-' | b'0'..=b'9') => {
            let Ok(sent) = std::str::from_utf8(sent) else { return false };
            if !is_json_number(sent) {
                return false;
            }
            match (parse_integer(sent), parse_integer(json)) {
                (Some(a), Some(b)) => a == b,
                _ => sent == json,
            }
        }
        _ => false,
    }
}

/// Whether a text is a number as JSON writes it, without anything before or after it.
fn is_json_number(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let ends = text.ends_with(|c: char| c.is_ascii_digit());
    begins && ends && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Parses a decimal number that is an integer: `42`, `42.0`, `4.2e1`.
fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok();
    }
    if let Some((integer_part, fraction)) = text.split_once('.')
        && !fraction.is_empty()
        && fraction.bytes().all(|b| b == b'0')
    {
        return parse_integer(integer_part);
    }
    // with an exponent; exact within the integers that `f64` represents
    let value: f64 = serde_json::from_str(text).ok()?;
    #[allow(clippy::cast_possible_truncation)]
    (value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER).then_some(value as i128)
}

#[cfg(any(test, feature = "_fuzzing"))]
#[path = "tests/header_params.rs"]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: Option<&str>, body: &str) -> Result<(), i64> {
        check_at("value", header, body)
    }

    fn check_at(path: &str, header: Option<&str>, body: &str) -> Result<(), i64> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("mcp-param-value", http::HeaderValue::from_str(header).expect("a header value"));
        }
        let body: Box<RawValue> = serde_json::from_str(body).expect("json");
        let path: Vec<_> = path.split('/').map(str::to_owned).collect();
        let coerced = vec![true; path.len() - 1];
        let param = HeaderParam { header: "Value".into(), path, is_integer: false, coerced };
        check_header_params(&[param], Some(&body), &headers).map_err(|e| e.code)
    }

    #[test]
    fn strings_are_compared_after_decoding() {
        assert_eq!(check(Some("Hello"), r#"{"value":"Hello"}"#), Ok(()));
        assert_eq!(check(Some("=?base64?SGVsbG8=?="), r#"{"value":"Hello"}"#), Ok(()));
        assert_eq!(check(Some("=?base64?SGVsbG8sIOS4lueVjA==?="), r#"{"value":"Hello, 世界"}"#), Ok(()));
        assert_eq!(check(Some("SGVsbG8="), r#"{"value":"SGVsbG8="}"#), Ok(()));
        assert_eq!(check(Some("=?base64?SGVsbG8="), r#"{"value":"=?base64?SGVsbG8="}"#), Ok(()));
        assert_eq!(check(Some(""), r#"{"value":""}"#), Ok(()));
        for bad in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?/w==?=",
            "hello",
            "=?BASE64?SGVsbG8=?=",
        ] {
            assert_eq!(check(Some(bad), r#"{"value":"Hello"}"#), Err(-32020), "{bad}");
        }
        assert_eq!(check(None, r#"{"value":"Hello"}"#), Err(-32020));
    }

    #[test]
    fn a_header_without_its_argument_is_refused() {
        assert_eq!(check(None, "{}"), Ok(()));
        assert_eq!(check(None, r#"{"value":null}"#), Ok(()));
        assert_eq!(check(Some("x"), "{}"), Err(-32020));
        assert_eq!(check(Some("null"), r#"{"value":null}"#), Err(-32020));
        assert_eq!(check(None, r#"{"value":{}}"#), Ok(()));
    }

    #[test]
    fn nested_arguments_are_compared_by_their_path() {
        assert_eq!(check_at("a/b", Some("x"), r#"{"a":{"b":"x"}}"#), Ok(()));
        assert_eq!(check_at("a/b", Some("y"), r#"{"a":{"b":"x"}}"#), Err(-32020));
        assert_eq!(check_at("a/b", None, r#"{"a":{"b":"x"}}"#), Err(-32020));
        for without in
            ["{}", r#"{"a":null}"#, r#"{"a":{}}"#, r#"{"a":{"b":null}}"#, r#"{"a":[1]}"#, r#"{"b":"x"}"#]
        {
            assert_eq!(check_at("a/b", None, without), Ok(()), "{without}");
            assert_eq!(check_at("a/b", Some("x"), without), Err(-32020), "{without}");
        }
        let as_text = r#"{"a":"{\"b\":\"x\"}"}"#;
        assert_eq!(check_at("a/b", None, as_text), Err(-32020));
        for other in [r#"{"a":"b"}"#, r#"{"a":"[1]"}"#, r#"{"a":"{\"b\":1,\"b\":2}"}"#] {
            assert_eq!(check_at("a/b", None, other), Ok(()), "not coerced: {other}");
            assert_eq!(check_at("a/b", Some("x"), other), Err(-32020), "{other}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value_and_before_coercion() {
        for (header, body) in
            [("42", "42"), ("42.0", "42"), ("42", "42.0"), ("-7", "-7"), ("100", "1e2"), ("0", "-0")]
        {
            assert_eq!(check(Some(header), &format!(r#"{{"value":{body}}}"#)), Ok(()), "{header} {body}");
        }
        for (header, body) in
            [("42", "43"), ("", "0"), ("42", "42.5"), ("true", "1"), ("-", "0"), ("42.", "42")]
        {
            assert_eq!(
                check(Some(header), &format!(r#"{{"value":{body}}}"#)),
                Err(-32020),
                "{header} {body}"
            );
        }
        // another reader may take this for another number, or for none
        for header in [
            "042",
            "00",
            "+42",
            "0x2a",
            "4_2",
            "42e",
            "1e",
            "--42",
            "- 42",
            "4 2",
            "=?base64?IDQy?=",
            "=?base64?NDIK?=",
            "=?base64?IDQuMmUxIA==?=",
        ] {
            for body in ["42", "0", "4.2e1"] {
                let checked = check(Some(header), &format!(r#"{{"value":{body}}}"#));
                assert_eq!(checked, Err(-32020), "{header:?} {body}");
            }
        }
        assert_eq!(check(Some("=?base64?NDI=?="), r#"{"value":42}"#), Ok(()));
        assert_eq!(check(Some("42"), r#"{"value":"42"}"#), Ok(()));
        assert_eq!(check(Some("42.0"), r#"{"value":"42"}"#), Err(-32020));
        assert_eq!(check(Some("true"), r#"{"value":true}"#), Ok(()));
        assert_eq!(check(Some("True"), r#"{"value":true}"#), Err(-32020));
    }
}
