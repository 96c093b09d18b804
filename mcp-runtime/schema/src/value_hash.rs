//! Hashes JSON values while they are parsed: values that are equal by JSON Schema have one hash, whatever their notation
//! and the order of their keys.

use std::{
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Computes the hashes of parts of one value.
///
/// The key is random, so that no one can write values that differ and have one hash.
#[derive(Debug, Clone)]
pub(super) struct ValueHasher {
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
    pub(super) fn null(&self) -> u64 {
        self.random.hash_one(0_u8)
    }

    pub(super) fn boolean(&self, value: bool) -> u64 {
        self.random.hash_one((1_u8, value))
    }

    pub(super) fn integer(&self, value: i128) -> u64 {
        let Ok(value) = i64::try_from(value) else { return self.random.hash_one((2_u8, value)) };
        // each step can be undone, so no two integers have one hash
        let mut mixed = (value.cast_unsigned() ^ self.before).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 29) ^ self.after
    }

    pub(super) fn float(&self, value: f64) -> u64 {
        // integers of JSON are within ±2^64
        const LIMIT: f64 = 36_893_488_147_419_103_232.0;
        if value.fract() == 0.0 && value.abs() < LIMIT {
            return self.integer(value as i128);
        }
        self.random.hash_one((3_u8, value.to_bits()))
    }

    pub(super) fn string(&self, text: &str) -> u64 {
        self.random.hash_one((4_u8, text))
    }

    /// Begins an array, of which every item's hash is written.
    pub(super) fn array(&self) -> impl Hasher + use<> {
        let mut hasher = self.random.build_hasher();
        5_u8.hash(&mut hasher);
        hasher
    }

    /// The contribution of a member to the sum of its object: the order of keys is insignificant.
    pub(super) fn member(&self, key: u64, value: u64) -> u64 {
        self.random.hash_one((key, value))
    }

    pub(super) fn object(&self, sum_of_members: u64) -> u64 {
        self.random.hash_one((6_u8, sum_of_members))
    }
}

/// The hashes of an array's items, to find those that are equal.
#[derive(Default)]
pub(super) struct ItemHashes(Vec<(u64, usize)>);

impl ItemHashes {
    /// Adds the hash of the next item.
    pub(super) fn push(&mut self, hash: u64) {
        self.0.push((hash, self.0.len()));
    }

    /// The positions of the first two items that are equal: values that differ have other hashes, as good as always.
    pub(super) fn first_duplicate(mut self) -> Option<(usize, usize)> {
        self.0.sort_unstable();
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        pairs.filter(|((one, _), (other, _))| one == other).map(|((_, i), (_, j))| (*i, *j)).min()
    }
}

/// The positions of the first two items that are equal, if any are.
pub(super) fn first_duplicate(items: &[Value]) -> Option<(usize, usize)> {
    let hasher = ValueHasher::default();
    let mut hashes = ItemHashes(Vec::with_capacity(items.len()));
    for item in items {
        hashes.push(match item.as_i64() {
            Some(integer) => hasher.integer(integer.into()),
            // a value can always be read
            None => HashOf(&hasher).deserialize(item).ok()?,
        });
    }
    hashes.first_duplicate()
}

/// Reads any value as its hash.
#[derive(Clone, Copy)]
pub(super) struct HashOf<'h>(pub(super) &'h ValueHasher);

impl<'de> DeserializeSeed<'de> for HashOf<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HashOf<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(self.0.null())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(self.0.boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        Ok(self.0.integer(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(self.0.integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        Ok(self.0.float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        Ok(self.0.string(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut hasher = self.0.array();
        while let Some(hash) = items.next_element_seed(self)? {
            hasher.write_u64(hash);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut sum = 0_u64;
        while let Some((key, value)) = map.next_entry_seed(self, self)? {
            sum = sum.wrapping_add(self.0.member(key, value));
        }
        Ok(self.0.object(sum))
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
