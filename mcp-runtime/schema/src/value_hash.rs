//! Hashes JSON values: values that are equal by JSON Schema have one hash, whatever their notation and the order of their
//! keys.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::Value;

/// Computes the hashes of parts of one value.
///
/// The key is random, so that no one can write values that differ and have one hash.
#[derive(Debug)]
struct ValueHasher {
    random: RandomState,
    /// The values that integers are mixed with.
    before: u64,
    after: u64,
}

impl Default for ValueHasher {
    fn default() -> Self {
        let random = RandomState::new();
        let (before, after) = (random.hash_one(7_u8), random.hash_one(8_u8));
        Self { random, before, after }
    }
}

impl ValueHasher {
    fn hash(&self, value: &Value) -> u64 {
        match value {
            Value::Null => self.random.hash_one(0_u8),
            Value::Bool(value) => self.random.hash_one((1_u8, value)),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(integer), ..) => self.integer(integer.into()),
                (_, Some(integer), _) => self.integer(integer.into()),
                (.., float) => self.float(float.unwrap_or_default()),
            },
            Value::String(text) => self.random.hash_one((4_u8, text)),
            Value::Array(items) => {
                let mut hasher = self.random.build_hasher();
                5_u8.hash(&mut hasher);
                items.iter().for_each(|item| hasher.write_u64(self.hash(item)));
                hasher.finish()
            }
            Value::Object(members) => {
                // the order of keys is insignificant
                let member = |(key, value): (&String, &Value)| self.random.hash_one((key, self.hash(value)));
                self.random.hash_one((6_u8, members.iter().map(member).fold(0, u64::wrapping_add)))
            }
        }
    }

    fn integer(&self, value: i128) -> u64 {
        let Ok(value) = i64::try_from(value) else { return self.random.hash_one((2_u8, value)) };
        // each step can be undone, so no two integers have one hash
        let mut mixed = (value.cast_unsigned() ^ self.before).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 29) ^ self.after
    }

    fn float(&self, value: f64) -> u64 {
        // integers of JSON are within ±2^64
        const LIMIT: f64 = 36_893_488_147_419_103_232.0;
        if value.fract() == 0.0 && value.abs() < LIMIT {
            return self.integer(value as i128);
        }
        self.random.hash_one((3_u8, value.to_bits()))
    }
}

/// The positions of the first two items that are equal, if any are: values that differ have other hashes, as good as always.
pub(super) fn first_duplicate(items: &[Value]) -> Option<(usize, usize)> {
    let hasher = ValueHasher::default();
    let mut hashes: Vec<(u64, usize)> =
        items.iter().enumerate().map(|(at, item)| (hasher.hash(item), at)).collect();
    hashes.sort_unstable();
    let pairs = hashes.iter().zip(hashes.iter().skip(1));
    pairs.filter(|((one, _), (other, _))| one == other).map(|((_, i), (_, j))| (*i, *j)).min()
}

/// Some values, found by their hashes.
#[derive(Debug)]
pub(super) struct ValueIndex {
    hasher: ValueHasher,
    /// With the position of each, sorted.
    hashes: Vec<(u64, usize)>,
}

impl ValueIndex {
    pub(super) fn new(values: &[Value]) -> Self {
        let hasher = ValueHasher::default();
        let mut hashes: Vec<_> =
            values.iter().enumerate().map(|(at, value)| (hasher.hash(value), at)).collect();
        hashes.sort_unstable();
        Self { hasher, hashes }
    }

    /// The positions at which a value may be.
    pub(super) fn find(&self, value: &Value) -> impl Iterator<Item = usize> {
        let hash = self.hasher.hash(value);
        let from = self.hashes.partition_point(|(other, _)| *other < hash);
        let found = self.hashes.iter().skip(from).take_while(move |(other, _)| *other == hash);
        found.map(|(_, at)| *at)
    }
}

/// How many steps of a check it takes to hash a value.
pub(super) fn hash_steps(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(hash_steps).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, member)| name.len() / 64 + hash_steps(member)).sum::<usize>()
        }
        _ => 1,
    }
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
