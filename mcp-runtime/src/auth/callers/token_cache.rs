//! Verdicts on tokens until they expire, by a keyed digest of the token, so that the tokens themselves are not in memory.
//! The table is bounded, and each principal has a share of it; tokens that do not fit are verified each time.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::core::{
    admission::{OwnedEntry, OwnedTable, Owner, Quota},
    connection::{Principal, principal_digest},
    crypto::random_bytes,
    sync::Mutex,
};

/// A digest of a token: 128 bits, which mean something in this process only.
pub(super) type TokenDigest = [u64; 2];

/// Makes digests with random keys. It runs for each request, so it is not SHA-256, which takes longer than all the rest
/// of a call. A keyed hash suffices: digests are not sent to clients, so that a token with the digest of another is found
/// only by guessing 128 bits.
pub(super) struct TokenHasher([(RandomState, [u8; 32]); 2]);

impl TokenHasher {
    /// # Errors
    /// The operating system provides no randomness.
    pub(super) fn new() -> Result<Self, String> {
        let random =
            || random_bytes().map_err(|e| format!("the operating system provides no randomness: {e}"));
        // the keys of two states of one thread differ in one bit or two: the secrets make them independent
        Ok(Self([(RandomState::new(), random()?), (RandomState::new(), random()?)]))
    }

    fn digest(&self, token: &str) -> TokenDigest {
        self.digest_of(&[], token)
    }

    /// A digest of a token of that owner.
    pub(super) fn digest_for(&self, owner: &Owner, token: &str) -> TokenDigest {
        self.digest_of(owner.as_str().as_bytes(), token)
    }

    fn digest_of(&self, owner: &[u8], token: &str) -> TokenDigest {
        let Self([first, second]) = self;
        [first, second].map(|(state, secret)| {
            let mut hasher = state.build_hasher();
            hasher.write(secret);
            if !owner.is_empty() {
                // no byte of an owner's text, so that it is clear where the token begins
                hasher.write(owner);
                hasher.write(&[0xFF]);
            }
            hasher.write(token.as_bytes());
            hasher.finish()
        })
    }
}

/// The verdicts on tokens that were accepted.
pub(super) struct TokenCache {
    hasher: TokenHasher,
    cached: Mutex<CachedTokens>,
}

struct CachedTokens {
    table: TokenTable,
    /// The generation of the keys that the tokens were verified with.
    generation: u64,
    entries: usize,
}

/// The bearer of each token, and the time until which the verdict holds.
type TokenTable = OwnedTable<TokenDigest, (Arc<Principal>, SystemTime), SystemTime>;

/// The share of the cache for tokens of one principal, in percent.
const SHARE_PERCENT: u8 = 5;

fn empty(entries: usize) -> TokenTable {
    OwnedTable::new(Quota::new(entries, SHARE_PERCENT), Quota::undivided(usize::MAX))
}

impl TokenCache {
    /// # Errors
    /// The operating system provides no randomness.
    pub(super) fn new(entries: usize) -> Result<Self, String> {
        let cached = Mutex::new(CachedTokens { table: empty(entries), generation: 0, entries });
        Ok(Self { hasher: TokenHasher::new()?, cached })
    }

    /// The key of a token in the table.
    pub(super) fn digest(&self, token: &str) -> TokenDigest {
        self.hasher.digest(token)
    }

    /// The bearer of a token, if the token was accepted before with keys that have not changed since.
    pub(super) fn get(
        &self,
        token: &TokenDigest,
        generation: u64,
        now: SystemTime,
    ) -> Option<Arc<Principal>> {
        let cached = self.cached.lock();
        if cached.generation != generation {
            return None;
        }
        let (principal, expires) = cached.table.get(token)?;
        // expired entries are removed when one is added
        (now < *expires).then(|| principal.clone())
    }

    /// Keeps a verdict until the token expires, and no longer than that.
    pub(super) fn put(
        &self,
        token: TokenDigest,
        principal: &Arc<Principal>,
        generation: u64,
        now: SystemTime,
        at_most: Duration,
    ) {
        let Some(owner) = principal_digest(Some(principal)).map(Owner::principal) else { return };
        let latest = now + at_most;
        let expires = principal.expires().map_or(latest, |expires| expires.min(latest));
        let mut cached = self.cached.lock();
        if cached.generation != generation {
            // tokens are verified again if their keys are out of use
            (cached.table, cached.generation) = (empty(cached.entries), generation);
        }
        cached.table.expire(now);
        let entry = OwnedEntry { owner, bytes: 0, expires, value: (principal.clone(), expires) };
        // a full table verifies each time
        let _full = cached.table.put(token, entry);
    }

    /// Forgets every token.
    pub(super) fn clear(&self) {
        let mut cached = self.cached.lock();
        cached.table = empty(cached.entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_kept_until_the_token_expires_or_the_keys_change() {
        let cache = TokenCache::new(100).unwrap();
        let digest = |token: &str| cache.digest(token);
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let ada = Arc::new(Principal::new("i", "ada").with_expiry(at(100)));
        cache.put(digest("a"), &ada, 1, at(0), Duration::from_secs(1000));
        assert!(cache.get(&digest("a"), 1, at(99)).is_some() && cache.get(&digest("b"), 1, at(0)).is_none());
        assert!(cache.get(&digest("a"), 1, at(100)).is_none(), "it has expired");
        assert!(cache.get(&digest("a"), 2, at(0)).is_none(), "other keys");
        cache.put(digest("b"), &ada, 2, at(0), Duration::from_secs(10));
        assert!(cache.get(&digest("a"), 2, at(0)).is_none() && cache.get(&digest("b"), 2, at(0)).is_some());
        assert!(cache.get(&digest("b"), 2, at(10)).is_none(), "for ten seconds at most");
        cache.clear();
        assert!(cache.get(&digest("b"), 2, at(0)).is_none());
    }

    #[test]
    fn one_principal_has_a_share_of_the_cache() {
        let cache = TokenCache::new(100).unwrap();
        let digest = |token: &str| cache.digest(token);
        let now = SystemTime::UNIX_EPOCH;
        let (ada, bob) = (Arc::new(Principal::new("i", "ada")), Arc::new(Principal::new("i", "bob")));
        for n in 0..50 {
            cache.put(digest(&format!("ada {n}")), &ada, 0, now, Duration::from_secs(1));
        }
        cache.put(digest("bob"), &bob, 0, now, Duration::from_secs(1));
        let kept = (0..50).filter(|n| cache.get(&digest(&format!("ada {n}")), 0, now).is_some()).count();
        assert!(kept == 5 && cache.get(&digest("bob"), 0, now).is_some(), "{kept}");
    }

    #[test]
    fn the_digest_of_a_token_depends_on_all_of_it_and_on_the_process() {
        let (hasher, other) = (TokenHasher::new().unwrap(), TokenHasher::new().unwrap());
        let token = "a".repeat(1000);
        let digest = hasher.digest(&token);
        assert!(digest == hasher.digest(&token) && digest != other.digest(&token) && digest[0] != digest[1]);
        for at in 0..token.len() {
            let mut changed = token.clone();
            changed.replace_range(at..=at, "b");
            let changed = hasher.digest(&changed);
            assert!(changed[0] != digest[0] && changed[1] != digest[1], "character {at}");
        }
    }
}
