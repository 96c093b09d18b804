//! Finds keys that an object has twice. Readers of JSON disagree about which of two values counts, so what has been
//! checked on the way to the server might not be what a function gets.

use std::{collections::HashSet, ops::Range};

use super::{
    error::{Mismatch, ValidationError},
    sort::sort_by,
    tokens::{Steps, Token, Tokens, decode_key},
};

/// The most duplicates that are reported.
const MAX_REPORTED: usize = 100;

/// Up to this many keys are compared in pairs, more are hashed.
const FEW_KEYS: usize = 8;

/// Whether an object in the text has a key twice, however the key is escaped.
pub fn has_duplicate_keys(json: &str) -> bool {
    !repeated_keys(json, 1).is_empty()
}

/// The keys that an object has before already, by their places; once there are `most` of them, no further object is looked at.
fn repeated_keys(json: &str, most: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // each key is followed by a colon
    if memchr::memchr_iter(b':', json.as_bytes()).nth(1).is_none() {
        return found;
    }
    // the keys of all open objects; an empty range begins an object
    let mut keys: Vec<Range<usize>> = Vec::new();
    let mut any_escaped = false;
    for token in Tokens::new(json) {
        match token {
            Token::Key { range, is_escaped } => {
                any_escaped |= is_escaped;
                keys.push(range);
            }
            Token::Open { is_object: true, .. } => keys.push(0..0),
            Token::Close { is_object: true, .. } => {
                let start = keys.iter().rposition(Range::is_empty).unwrap_or(0);
                let own = keys.get(start + 1..).unwrap_or_default();
                if own.len() > 1 {
                    find_repeated(json, own, any_escaped, &mut found);
                    if found.len() >= most {
                        break;
                    }
                }
                keys.truncate(start);
            }
            _ => {}
        }
    }
    found
}

/// Finds the keys of one object that are repeated.
fn find_repeated(json: &str, keys: &[Range<usize>], any_escaped: bool, found: &mut Vec<Range<usize>>) {
    let text = |range: &Range<usize>| json.as_bytes().get(range.clone()).unwrap_or_default();
    if any_escaped {
        let mut seen = HashSet::with_capacity(keys.len());
        let decoded = |key| decode_key(json, key, memchr::memchr(b'\\', text(key)).is_some());
        found.extend(keys.iter().filter(|key| !seen.insert(decoded(key))).cloned());
    } else if keys.len() <= FEW_KEYS {
        let is_repeated = |(at, key): &(usize, &Range<usize>)| {
            let (length, key) = (key.len(), text(key));
            keys.iter().take(*at).any(|other| other.len() == length && text(other) == key)
        };
        found.extend(keys.iter().enumerate().filter(is_repeated).map(|(_, key)| key.clone()));
    } else {
        let mut seen = HashSet::with_capacity(keys.len());
        found.extend(keys.iter().filter(|key| !seen.insert(text(key))).cloned());
    }
}

/// The keys that occur twice, each once, by path.
pub fn duplicate_keys(json: &str) -> Vec<ValidationError> {
    // one key may be repeated a million times
    let mut repeated = repeated_keys(json, 10 * MAX_REPORTED);
    sort_by(&mut repeated, |one, other| one.start.cmp(&other.start));
    let mut repeated = repeated.into_iter().take(10 * MAX_REPORTED).peekable();
    let mut errors: Vec<ValidationError> = Vec::new();
    let mut steps = Steps::new(json);
    for token in Tokens::new(json) {
        if repeated.peek().is_none() || errors.len() == MAX_REPORTED {
            break;
        }
        steps.follow(&token);
        if let Token::Key { range, .. } = &token
            && repeated.next_if_eq(range).is_some()
        {
            let path = steps.path();
            if errors.iter().all(|error| error.path != path) {
                let mismatch = Mismatch::new("one value", "is given more than once");
                errors.push(ValidationError::new(path.to_owned(), mismatch));
            }
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
