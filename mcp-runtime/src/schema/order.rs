//! A total order of JSON values, in which numbers compare by value.
//!
//! With an order and not only equality, `uniqueItems` is checked by sorting, in less than quadratic time.

use std::{
    cmp::Ordering,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::{Map, Value};

use super::number;

/// Whether two values are equal by JSON Schema: `1` equals `1.0`, and the order of keys is insignificant.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        _ => compare(a, b) == Ordering::Equal,
    }
}

/// The positions of two equal items, if any are equal.
pub(super) fn duplicates(items: &[Value]) -> Option<(usize, usize)> {
    // most items differ in their hashes, which are quicker to compare
    let mut sorted: Vec<(u64, usize, &Value)> =
        items.iter().enumerate().map(|(at, item)| (hash(item), at, item)).collect();
    sorted.sort_by(|(a_hash, _, a), (b_hash, _, b)| a_hash.cmp(b_hash).then_with(|| compare(a, b)));
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs
        .filter(|((a_hash, _, a), (b_hash, _, b))| a_hash == b_hash && equal(a, b))
        .map(|((_, i, _), (_, j, _))| (*i, *j))
        .min()
}

/// A hash that is the same for equal values.
fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(rank(value));
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(&mut hasher),
        // as one type, without a negative zero; large integers that differ may have one hash
        Value::Number(number) => (number.as_f64().unwrap_or_default() + 0.0).to_bits().hash(&mut hasher),
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(items) => items.iter().for_each(|item| hasher.write_u64(hash(item))),
        // in any order
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                hasher.write_u64(hash(value));
                hasher.finish()
            };
            hasher.write_u64(map.iter().map(member).fold(0, u64::wrapping_add));
        }
    }
    hasher.finish()
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => number::compare(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let differing = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            differing.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            if a.keys().is_sorted() && b.keys().is_sorted() {
                return compare_members(a.iter(), b.iter());
            }
            // a feature of `serde_json` that any crate may switch on keeps the order of the text
            fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
                let mut members: Vec<_> = map.iter().collect();
                members.sort_unstable_by_key(|(key, _)| *key);
                members
            }
            compare_members(sorted(a).into_iter(), sorted(b).into_iter())
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Compares the keys of two objects, then their values.
fn compare_members<'a>(
    a: impl Iterator<Item = (&'a String, &'a Value)> + Clone,
    b: impl Iterator<Item = (&'a String, &'a Value)> + Clone,
) -> Ordering {
    let keys = a.clone().map(|(key, _)| key).cmp(b.clone().map(|(key, _)| key));
    keys.then_with(|| {
        let values = a.zip(b).map(|((_, a), (_, b))| compare(a, b));
        values.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equality_is_by_value() {
        assert!(equal(&json!({"a": 1, "b": [2.0]}), &json!({"b": [2], "a": 1.0})));
        assert!(!equal(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!equal(&json!(0), &json!(false)));
        assert!(!equal(&json!("1"), &json!(1)));
    }

    #[test]
    fn duplicates_are_found_by_position() {
        let items = [json!(3), json!({"x": 1}), json!("3"), json!({"x": 1.0})];
        assert_eq!(duplicates(&items), Some((1, 3)));
        assert_eq!(duplicates(&[json!(1), json!(true), json!([1])]), None);
    }
}
