//! Hashes JSON values: values that are equal by JSON Schema have one hash, whatever their notation and the order of their
//! keys.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::Value;

use super::number;

/// The hash of a value. The key is random, so that no one can write values that differ and have one hash.
fn hash(random: &RandomState, value: &Value) -> u64 {
    match value {
        Value::Null => random.hash_one(0_u8),
        Value::Bool(value) => random.hash_one((1_u8, value)),
        Value::Number(number) => {
            let (whole, rest) = number::parts(number);
            random.hash_one((2_u8, whole, rest.to_bits()))
        }
        Value::String(text) => random.hash_one((3_u8, text)),
        Value::Array(items) => {
            let mut hasher = random.build_hasher();
            4_u8.hash(&mut hasher);
            items.iter().for_each(|item| hasher.write_u64(hash(random, item)));
            hasher.finish()
        }
        Value::Object(members) => {
            // the order of keys is insignificant
            let member = |(key, value): (&String, &Value)| random.hash_one((key, hash(random, value)));
            random.hash_one((5_u8, members.iter().map(member).fold(0, u64::wrapping_add)))
        }
    }
}

/// The positions of the first two items that are equal, if any are: values that differ have other hashes, as good as always.
pub(super) fn first_duplicate(items: &[Value]) -> Option<(usize, usize)> {
    let random = RandomState::new();
    let mut hashes: Vec<(u64, usize)> =
        items.iter().enumerate().map(|(at, item)| (hash(&random, item), at)).collect();
    hashes.sort_unstable();
    let pairs = hashes.iter().zip(hashes.iter().skip(1));
    pairs.filter(|((one, _), (other, _))| one == other).map(|((_, i), (_, j))| (*i, *j)).min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_found_by_position() {
        let items = [json!(3), json!({"x": 1, "y": [null]}), json!("3"), json!({"y": [null], "x": 1.0})];
        assert_eq!(first_duplicate(&items), Some((1, 3)));
        assert_eq!(first_duplicate(&[json!(0), json!(-0.0), json!(0)]), Some((0, 1)));
        assert_eq!(first_duplicate(&[json!(1), json!(true), json!([1]), json!("1"), json!(null)]), None);
    }

    #[test]
    fn values_that_differ_have_other_hashes() {
        let several = [
            json!([]),
            json!([[]]),
            json!({}),
            json!([{}]),
            json!({"a": {}}),
            json!({"a": 1, "b": 2}),
            json!({"a": 2, "b": 1}),
            json!(u64::MAX),
            json!(u64::MAX - 1),
            json!(2.0_f64.powi(64)),
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992_i64),
            json!(0.5),
            json!(1e300),
            json!(false),
            json!(0),
            json!(""),
        ];
        assert_eq!(first_duplicate(&several), None);
    }
}
