//! Finds keys that an object has twice. Readers of JSON disagree about which of two values counts, so what has been
//! checked on the way to the server might not be what a function gets.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use super::{
    error::{Mismatch, ValidationError},
    tokens::{Steps, Token, Tokens, decode_key, is_key, string_end},
};

/// The most duplicates that are reported.
const MAX_REPORTED: usize = 100;

/// Up to this many keys are compared in pairs, more are hashed.
const FEW_KEYS: usize = 8;

/// Whether an object in the text has a key twice, however the key is escaped.
pub fn has_duplicate_keys(json: &str) -> bool {
    let text = json.as_bytes();
    // each key is followed by a colon
    if memchr::memchr_iter(b':', text).nth(1).is_none() {
        return false;
    }
    // the keys of all open objects; an empty range begins an object
    let mut keys: Vec<Range<usize>> = Vec::new();
    let mut any_escaped = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let start = at - 1;
                let (end, is_escaped) = string_end(text, at);
                at = end;
                if is_key(text, end) {
                    any_escaped |= is_escaped;
                    keys.push(start..end);
                }
            }
            b'{' => keys.push(0..0),
            b'}' => {
                let start = keys.iter().rposition(Range::is_empty).unwrap_or(0);
                if has_equal_keys(json, keys.get(start + 1..).unwrap_or_default(), any_escaped) {
                    return true;
                }
                keys.truncate(start);
            }
            _ => {}
        }
    }
    false
}

fn has_equal_keys(json: &str, keys: &[Range<usize>], any_escaped: bool) -> bool {
    if keys.len() < 2 {
        return false;
    }
    if any_escaped {
        let decoded = |range: &Range<usize>| {
            let raw = json.get(range.clone()).unwrap_or_default();
            decode_key(json, range, memchr::memchr(b'\\', raw.as_bytes()).is_some())
        };
        let mut seen = HashSet::with_capacity(keys.len());
        return !keys.iter().all(|key| seen.insert(decoded(key)));
    }
    let text = |range: &Range<usize>| json.as_bytes().get(range.clone()).unwrap_or_default();
    if keys.len() <= FEW_KEYS {
        return keys.iter().enumerate().any(|(at, key)| {
            let (length, key) = (key.len(), text(key));
            keys.iter().take(at).any(|other| other.len() == length && text(other) == key)
        });
    }
    let mut seen = HashSet::with_capacity(keys.len());
    !keys.iter().all(|key| seen.insert(text(key)))
}

/// The keys that occur twice, each once, by path.
pub fn duplicate_keys(json: &str) -> Vec<ValidationError> {
    let mut errors: Vec<ValidationError> = Vec::new();
    let mut repetitions = 0;
    let mut steps = Steps::new(json);
    let mut open: Vec<HashSet<Cow<'_, str>>> = Vec::new();
    for token in Tokens::new(json) {
        steps.follow(&token);
        match &token {
            Token::Open { is_object: true, .. } => open.push(HashSet::new()),
            Token::Close { is_object: true, .. } => drop(open.pop()),
            Token::Key { range, is_escaped } => {
                let key = decode_key(json, range, *is_escaped);
                let is_new = open.last_mut().is_none_or(|keys| keys.insert(key));
                if !is_new {
                    repetitions += 1;
                    let path = steps.path();
                    if errors.iter().all(|error| error.path != path) {
                        let mismatch = Mismatch::new("one value", "is given more than once");
                        errors.push(ValidationError::at(path, mismatch));
                    }
                }
                // one key may be repeated a million times
                if errors.len() == MAX_REPORTED || repetitions == 10 * MAX_REPORTED {
                    break;
                }
            }
            _ => {}
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_found_at_every_depth_and_in_every_notation() {
        let cases = [
            (r#"{"a":1,"a":2}"#, "a"),
            (r#"{"b":0,"a":{"x":[1,{"k":1,"l":2,"k":3}]}}"#, "a.x[1].k"),
            (r#"{"a":1,"\u0061":2}"#, "a"),
            (r#"{"a":{"\"q":1,"\u0022q":2}}"#, "a[\"\\\"q\"]"),
            (r#"{"":1,"":2}"#, "[\"\"]"),
            (r#"[[{"a" : 1 , "a" : 1}]]"#, "[0][0].a"),
        ];
        for (json, path) in cases {
            assert!(has_duplicate_keys(json), "{json}");
            let errors = duplicate_keys(json);
            assert_eq!(
                errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
                [format!("{path}: is given more than once")]
            );
        }
        let many: Vec<String> = (0..20).map(|n| format!("\"k{n}\":{n}")).collect();
        assert!(!has_duplicate_keys(&format!("{{{}}}", many.join(","))));
        assert!(has_duplicate_keys(&format!("{{{},\"k7\":0}}", many.join(","))));
    }

    #[test]
    fn equal_keys_of_different_objects_are_not_duplicates() {
        for json in [
            "{}",
            "[]",
            "3",
            r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#,
            r#"[{"a":1},{"a":1}]"#,
            r#"{"a":"{\"a\":1,\"a\":2}","A":"a"}"#,
            r#"{"a":"x","ab":"a"}"#,
        ] {
            assert!(!has_duplicate_keys(json), "{json}");
            assert_eq!(duplicate_keys(json), []);
        }
    }

    #[test]
    fn the_number_of_reported_duplicates_is_bounded() {
        let twice: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":1,\"k{n}\":2")).collect();
        let json = format!("{{{}}}", twice.join(","));
        assert!(has_duplicate_keys(&json));
        assert_eq!(duplicate_keys(&json).len(), MAX_REPORTED);
    }
}
