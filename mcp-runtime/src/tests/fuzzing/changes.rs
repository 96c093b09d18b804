//! Random changes of seeds, for tests that run without `cargo fuzz`.

/// Pseudo-random numbers, the same in each run (SplitMix64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below the limit; 0 if it is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).expect("a small number")
    }
}

/// A seed with up to four changes, some of them parts of other seeds.
pub(crate) fn change(seed: &[u8], others: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    const INTERESTING: &[&[u8]] = &[
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\0",
        b"\n",
        b"\r\n",
        b"null",
        b"0",
        b"-1",
        b"1e999",
        b"9007199254740993",
        b"\\u0061",
        b"\\ud800",
        b"\xff",
        b"\xc3\xa9",
        b"..",
        b"%2e",
        b"=",
        b"$ref",
        b"*",
        b"&a",
    ];
    let mut data = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(data.len() + 1);
        let end = (at + numbers.below(12)).min(data.len());
        match numbers.below(5) {
            0 => drop(data.drain(at..end)),
            1 => {
                let new = INTERESTING[numbers.below(INTERESTING.len())];
                data.splice(at..at, new.iter().copied());
            }
            2 => {
                let part = data[at..end].to_vec();
                data.splice(at..at, part);
            }
            3 => {
                let other = &others[numbers.below(others.len())];
                let from = numbers.below(other.len() + 1);
                let to = (from + numbers.below(24)).min(other.len());
                data.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                if let Some(byte) = data.get_mut(at) {
                    *byte = u8::try_from(numbers.below(256)).expect("a byte");
                }
            }
        }
    }
    data
}
