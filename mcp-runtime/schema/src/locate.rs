//! Finds the value that a decoder refused. An error of `serde_json` has a position; what a model needs is a path. This
//! works for every type, without any code generated for it.

use serde_json::Value;

use super::{
    error::{summarize, truncate, without_position},
    tokens::{Steps, Token, Tokens},
};

/// The place of an error in a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The path from the root, as in `items[2].price`; empty for the root.
    pub path: String,
    /// The value there as a message shows it, unless it is an array or an object.
    pub value: Option<String>,
}

/// How deep an error without a position of its own is followed.
const MAX_FOLLOWED: usize = 16;

/// The innermost value at which `decode` fails with `error`.
///
/// A type that reads a string and then parses it fails after the string was read, and its error gets the position where
/// the array or object around it ends. So the text is decoded again up to the last member: if that is enough for the
/// same error, the member is what was refused.
pub fn locate(
    json: &str,
    error: &serde_json::Error,
    decode: &dyn Fn(&str) -> Option<serde_json::Error>,
) -> Place {
    let offset = match error.line() {
        0 => json.trim_end().len(),
        line => json.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>() + error.column(),
    };
    let text = without_position(error);
    let fails_alike = |prefix: &str| {
        decode(prefix).is_some_and(|error| !error.is_eof() && without_position(&error) == text)
    };
    let mut found = find_value(json, offset, true);
    // an array or an object that is refused before it is read begins where a reader of the value before it has got to
    let is_unread = json.as_bytes().get(offset).is_some_and(|byte| matches!(byte, b'{' | b'['));
    if is_unread && !json.get(..found.end).is_some_and(fails_alike) {
        found = find_value(json, offset, false);
    }
    for _ in 0..MAX_FOLLOWED {
        let Some(end) = found.last_member.filter(|end| json.get(..*end).is_some_and(fails_alike)) else {
            break;
        };
        found = find_value(json, end, false);
    }
    found.place
}

/// A value in a text.
#[derive(Default)]
struct FoundValue {
    place: Place,
    end: usize,
    /// Where the last member ends, if it is an array or an object with members.
    last_member: Option<usize>,
}

/// The value that ends at `offset`; with `or_before`, also one that a reader has read which got to `offset`.
fn find_value(json: &str, offset: usize, or_before: bool) -> FoundValue {
    let mut steps = Steps::new(json);
    // where the last value in each open array or object ended
    let mut open: Vec<Option<usize>> = Vec::new();
    for token in Tokens::new(json) {
        let at = |steps: &mut Steps<'_>, end, last_member| FoundValue {
            place: Place { path: steps.path().to_owned(), ..Place::default() },
            end,
            last_member,
        };
        let reach = |end: usize| if or_before { reach(json, end) } else { end };
        match &token {
            Token::Open { at: start, .. } => {
                // an array or an object of the wrong type is refused before it is read
                if *start >= offset {
                    return at(&mut steps, *start, None);
                }
                open.push(None);
            }
            Token::Scalar(range) => {
                if let Some(end) = open.last_mut() {
                    *end = Some(range.end);
                }
                if reach(range.end) >= offset {
                    let mut found = at(&mut steps, range.end, None);
                    found.place.value = json.get(range.clone()).map(summarize_scalar);
                    return found;
                }
            }
            Token::Close { end, .. } => {
                let last_member = open.pop().flatten();
                if let Some(around) = open.last_mut() {
                    *around = Some(*end);
                }
                steps.follow(&token);
                if reach(*end) >= offset {
                    return at(&mut steps, *end, last_member);
                }
                continue;
            }
            Token::Key { range, .. } => {
                steps.follow(&token);
                if range.end >= offset {
                    return at(&mut steps, range.end, None);
                }
                continue;
            }
            Token::Comma => {}
        }
        steps.follow(&token);
    }
    FoundValue::default()
}

/// How far a reader gets that has read the value which ends here: behind a comma, to the next value.
fn reach(json: &str, end: usize) -> usize {
    let skip_spaces = |at: usize| {
        let rest = json.get(at..).unwrap_or_default();
        at + rest.len() - rest.trim_ascii_start().len()
    };
    let comma = skip_spaces(end);
    if json.as_bytes().get(comma) == Some(&b',') { skip_spaces(comma + 1) } else { end }
}

/// A scalar in a message, truncated to a readable length.
pub(super) fn summarize_scalar(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => summarize(&Value::String(text)),
        // numbers keep their digits
        _ => truncate(json).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, de::DeserializeOwned};

    use super::*;

    #[derive(Debug)]
    struct Even;

    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            if text.len().is_multiple_of(2) { Ok(Self) } else { Err(serde::de::Error::custom("odd")) }
        }
    }

    /// Refuses itself after its members were read.
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "BTreeMap<String, u8>")]
    struct Few;

    impl TryFrom<BTreeMap<String, u8>> for Few {
        type Error = &'static str;
        fn try_from(map: BTreeMap<String, u8>) -> Result<Self, Self::Error> {
            if map.len() < 3 { Ok(Self) } else { Err("too many") }
        }
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    enum Either {
        Even(Even),
        Record { even: Even },
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Record {
        one: Even,
        #[serde(default)]
        list: Vec<Even>,
        #[serde(default)]
        map: BTreeMap<String, Vec<Record>>,
        number: Option<u8>,
        few: Option<Few>,
        #[serde(default)]
        either: Vec<Either>,
    }

    fn place<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> (String, Option<String>) {
        let error = serde_json::from_str::<T>(json).expect_err("an error");
        let Place { path, value, .. } =
            locate(json, &error, &|prefix| serde_json::from_str::<T>(prefix).err());
        (path, value)
    }

    #[test]
    fn the_innermost_refused_value_is_found() {
        let cases = [
            (r#"{"one":"x"}"#, "one", Some("\"x\"")),
            (r#"{ "one" : "" , "list" : [ "ab" , "abc" ] }"#, "list[1]", Some("\"abc\"")),
            ("{\n  \"one\":\n    \"é\",\n  \"list\": [\"a\"]\n}", "list[0]", Some("\"a\"")),
            (
                r#"{"one":"","map":{"k k":[{"one":""},{"one":"abc"}]}}"#,
                "map[\"k k\"][1].one",
                Some("\"abc\""),
            ),
            (r#"{"one":"","number":300}"#, "number", Some("300")),
            (r#"{"one":"","number":-1,"list":[]}"#, "number", Some("-1")),
            (r#"{"one":{"x":1}}"#, "one", None),
            (r#"{"one":"","list":"x"}"#, "list", Some("\"x\"")),
            (r#"{"list":[]}"#, "", None),
            (r#"{"one":"","map":{"a":[{"list":[]}]}}"#, "map.a[0]", None),
            (r#"{"one" : "x" , "list":[]}"#, "one", Some("\"x\"")),
            (r#"{"list":["a" ,"b"],"one":""}"#, "list[0]", Some("\"a\"")),
            (r#"{"list":["a", {}],"one":""}"#, "list[0]", Some("\"a\"")),
            (r#"{"list":["", {}],"one":""}"#, "list[1]", None),
            (r#"{"one":"","few":{"a":1,"b":2,"c":3}}"#, "few", None),
            (r#"{"few":{"a":1,"b":2,"c":3},"one":""}"#, "few", None),
            (r#"{"few":{"a":1,"b":2,"c":300},"one":""}"#, "few.c", Some("300")),
            (r#"{"either":[{"Even":""},{"Even":"x"}],"one":""}"#, "either[1].Even", Some("\"x\"")),
            (r#"{"one":"","either":[{"Record":{"even":"x"}}]}"#, "either[0].Record.even", Some("\"x\"")),
            ("3", "", Some("3")),
        ];
        for (json, path, value) in cases {
            assert_eq!(place::<Record>(json), (path.to_owned(), value.map(str::to_owned)), "{json}");
        }
    }

    #[test]
    fn values_are_shown_at_a_readable_length() {
        let (_, value) = place::<Even>(&format!("\"{}\"", "x".repeat(100_001)));
        assert!(value.is_some_and(|value| value.len() < 100 && value.ends_with("…\"")));
        let (_, value) = place::<u128>("18446744073709551615000000000000000000000000");
        assert_eq!(value.as_deref(), Some("18446744073709551615000000000000000000000000"));
    }
}
