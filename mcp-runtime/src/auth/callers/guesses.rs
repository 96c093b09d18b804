//! Slows guesses: an address has a rate of tokens that are refused. Once it is used up, tokens that were accepted from
//! this address before are verified as always, so that a guesser does not lock out the others behind its address; a token
//! that is new there is refused without being looked at, and is examined if it comes again after the time that it was
//! told, within a separate rate. Nothing that is kept contains a token, and all of it has a fixed size.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{
    token_cache::{TokenDigest, TokenHasher},
    verifier::{Denied, DeniedReason},
};
use crate::core::{
    admission::{Owner, Quota, Rate, RateLimiter, Shares},
    connection::Principal,
    log_limit::{LogLimit, LogLine},
    recent_map::RecentMap,
    sync::Mutex,
};

/// New tokens of one address that are verified at once: an authorization server has places for others.
const MAX_VERIFYING: usize = 32;
/// New tokens that wait for their turn, of which one address may have half.
const MAX_WAITING: usize = 1024;
/// How long one of them waits.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// How long a token that was accepted from an address is known there.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a refusal is kept at most.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// Refusals that are kept.
const MAX_REFUSED: usize = 1024;
/// A refusal with a longer description is not kept.
const MAX_DESCRIPTION: usize = 256;
/// Tokens that are known, and as many that were told to wait.
const MAX_MARKS: usize = 16_384;

/// Slows the guesses of each address.
pub(super) struct Guesses {
    /// Tokens that were refused.
    failed: RateLimiter,
    /// New tokens that come again, of addresses whose tokens were refused too often.
    late: RateLimiter,
    log_limit: LogLimit,
    hasher: TokenHasher,
    /// Until when a token is known, and until when one was told to wait.
    known: Mutex<RecentMap<TokenDigest, Instant>>,
    waiting: Mutex<RecentMap<TokenDigest, Instant>>,
    /// Refusals, and until when they hold.
    refused: Mutex<RecentMap<TokenDigest, (Instant, Denied)>>,
    refused_for: Duration,
    turns: Mutex<Turns>,
    queue: Arc<Shares>,
}

/// The addresses whose new tokens are being verified.
struct Turns {
    by_owner: HashMap<Owner, Weak<Semaphore>>,
    /// How many there may be before those are removed that verify no more.
    sweep_at: usize,
}

/// Whether a token is verified now.
pub(super) enum Entrance {
    Verify(Attempt),
    /// After its turn has come.
    Wait(Attempt, Arc<Semaphore>),
    /// It was refused a moment ago.
    Refused(Denied),
    /// Too many tokens of its address were refused.
    Limited(Duration),
}

/// A token that is being verified.
pub(super) struct Attempt {
    owner: Owner,
    token: TokenDigest,
    /// Accepted from this address before: no guess, whatever becomes of it.
    is_known: bool,
    /// Whether the rate was examined already.
    is_late: bool,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Guesses {
    /// `owners`: how many addresses the rate remembers; `kept`: how long the answers of all methods may be kept.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(super) fn new(rate: Rate, owners: usize, kept: Duration) -> Result<Self, String> {
        Ok(Self {
            failed: RateLimiter::new(rate, owners),
            late: RateLimiter::new(rate, owners),
            log_limit: LogLimit::new(),
            hasher: TokenHasher::new()?,
            known: Mutex::new(RecentMap::new(MAX_MARKS)),
            waiting: Mutex::new(RecentMap::new(MAX_MARKS)),
            refused: Mutex::new(RecentMap::new(MAX_REFUSED)),
            refused_for: kept.min(REFUSED_FOR),
            turns: Mutex::new(Turns { by_owner: HashMap::new(), sweep_at: 1024 }),
            queue: Shares::new(Quota::half(MAX_WAITING)),
        })
    }

    /// Decides about a token whose verdict is not known.
    pub(super) fn enter(&self, owner: &Owner, token: &str) -> Entrance {
        let token = self.hasher.digest_for(owner, token);
        let now = Instant::now();
        if let Some((_, denied)) = self.refused.lock().get(&token).filter(|(until, _)| now < *until) {
            return Entrance::Refused(denied.clone());
        }
        let is_known = self.known.lock().get(&token).is_some_and(|until| now < *until);
        let mut attempt = Attempt { owner: owner.clone(), token, is_known, is_late: false, _turn: None };
        if is_known {
            return Entrance::Verify(attempt);
        }
        if let Err(wait) = self.check_rate(&mut attempt) {
            return Entrance::Limited(wait);
        }
        let turns = self.turns.lock().of(owner);
        match turns.clone().try_acquire_owned() {
            Ok(turn) => Entrance::Verify(Attempt { _turn: Some(turn), ..attempt }),
            Err(_) => Entrance::Wait(attempt, turns),
        }
    }

    /// Waits for the turn of a token. Those before it may have used up the rate.
    ///
    /// # Errors
    /// How long the client has to wait.
    pub(super) async fn wait(
        &self,
        mut attempt: Attempt,
        turns: Arc<Semaphore>,
    ) -> Result<Attempt, Duration> {
        let busy = Duration::from_secs(1);
        let _place = self.queue.try_acquire(&attempt.owner, 1).ok_or(busy)?;
        let turn = timeout(MAX_WAIT, turns.acquire_owned()).await.map_err(|_| busy)?.map_err(|_| busy)?;
        if !attempt.is_late {
            self.check_rate(&mut attempt)?;
        }
        Ok(Attempt { _turn: Some(turn), ..attempt })
    }

    /// Checks that not too many tokens of the address were refused.
    fn check_rate(&self, attempt: &mut Attempt) -> Result<(), Duration> {
        let Err(wait) = self.failed.check(&attempt.owner) else { return Ok(()) };
        if let Some(LogLine { suppressed }) = self.log_limit.line() {
            tracing::warn!(
                suppressed,
                address = %attempt.owner.as_str(),
                "tokens from this address are refused unverified: too many were invalid\n\
                 if it is a proxy, set `.http(|http| http.trusted_proxies([..]))`"
            );
        }
        let (now, mut waiting) = (Instant::now(), self.waiting.lock());
        match waiting.get(&attempt.token).map(|until| until.saturating_duration_since(now)) {
            Some(left) if !left.is_zero() => Err(left),
            Some(_) if self.late.take(&attempt.owner).is_ok() => {
                attempt.is_late = true;
                Ok(())
            }
            _ => {
                // in whole seconds, as the client is told
                let wait = Duration::from_secs(wait.as_secs() + 1);
                put(&mut waiting, attempt.token, now + wait);
                Err(wait)
            }
        }
    }

    /// Records what has become of a token.
    pub(super) fn conclude(&self, attempt: &Attempt, verdict: Result<&Principal, &Denied>) {
        match verdict {
            Ok(_) => put(&mut self.known.lock(), attempt.token, Instant::now() + KNOWN_FOR),
            Err(denied) if denied.reason == DeniedReason::InvalidToken => {
                if !attempt.is_known && !denied.is_genuine {
                    // an address that has used it up already stays refused
                    let _used_up = self.failed.take(&attempt.owner);
                }
                let is_kept = denied.is_lasting && denied.description.len() <= MAX_DESCRIPTION;
                if is_kept && !self.refused_for.is_zero() {
                    let refusal = (Instant::now() + self.refused_for, denied.clone());
                    put(&mut self.refused.lock(), attempt.token, refusal);
                }
            }
            Err(_) => {}
        }
    }

    /// Forgets which tokens were refused and accepted.
    pub(super) fn clear(&self) {
        *self.refused.lock() = RecentMap::new(MAX_REFUSED);
        *self.known.lock() = RecentMap::new(MAX_MARKS);
    }
}

impl Turns {
    fn of(&mut self, owner: &Owner) -> Arc<Semaphore> {
        if let Some(turns) = self.by_owner.get(owner).and_then(Weak::upgrade) {
            return turns;
        }
        if self.by_owner.len() >= self.sweep_at {
            self.by_owner.retain(|_, turns| turns.strong_count() > 0);
            self.sweep_at = (self.by_owner.len() * 2).max(1024);
        }
        let turns = Arc::new(Semaphore::new(MAX_VERIFYING));
        self.by_owner.insert(owner.clone(), Arc::downgrade(&turns));
        turns
    }
}

/// Adds to a map; when it is full, what was not used for long is forgotten.
fn put<V>(map: &mut RecentMap<TokenDigest, V>, token: TokenDigest, value: V) {
    drop(map.trim());
    map.insert(token, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guesses(rate: &str) -> Guesses {
        Guesses::new(Rate::parse(rate).unwrap(), 1024, Duration::from_secs(60)).unwrap()
    }

    fn address(text: &str) -> Owner {
        Owner::address(text.parse().unwrap())
    }

    fn invalid() -> Denied {
        Denied::invalid_token("unknown")
    }

    /// Presents a token that the method accepts or not: `Ok` if it was examined.
    fn present(guesses: &Guesses, owner: &Owner, token: &str, is_good: bool) -> Result<(), Entrance> {
        match guesses.enter(owner, token) {
            Entrance::Verify(attempt) => {
                let (ada, invalid) = (Principal::new("i", "ada"), invalid());
                guesses.conclude(&attempt, if is_good { Ok(&ada) } else { Err(&invalid) });
                Ok(())
            }
            other => Err(other),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_guesses_too_often_is_not_looked_at_and_the_others_behind_it_are() {
        let guesses = guesses("10/1m");
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        assert!(present(&guesses, &one, "ada's", true).is_ok());
        let looked_at = (0..2000).filter(|n| present(&guesses, &one, &format!("guess {n}"), false).is_ok());
        assert_eq!(looked_at.count(), 10);
        assert!(present(&guesses, &one, "ada's", true).is_ok(), "known from this address");
        assert!(present(&guesses, &other, "bob's", true).is_ok(), "another address");
        assert!(matches!(present(&guesses, &other, "guess", false), Ok(())));
        // a new token has a way in
        let Err(Entrance::Limited(wait)) = present(&guesses, &one, "bob's", true) else {
            panic!("too early")
        };
        tokio::time::advance(wait - Duration::from_millis(2)).await;
        while present(&guesses, &one, &format!("{:?}", Instant::now()), false).is_ok() {
            tokio::time::advance(Duration::from_nanos(1)).await;
        }
        assert!(matches!(present(&guesses, &one, "bob's", true), Err(Entrance::Limited(_))));
        tokio::time::advance(Duration::from_millis(2)).await;
        assert!(present(&guesses, &one, "bob's", true).is_ok());
        assert!(present(&guesses, &one, "bob's", true).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_refused_again_is_one_guess() {
        let guesses = guesses("2/1m");
        let one = address("192.0.2.1");
        assert!(present(&guesses, &one, "bad", false).is_ok());
        for _ in 0..100 {
            let Err(Entrance::Refused(denied)) = present(&guesses, &one, "bad", false) else {
                panic!("looked at again")
            };
            assert_eq!(denied.reason, DeniedReason::InvalidToken);
        }
        assert!(present(&guesses, &one, "other", false).is_ok());
        assert!(matches!(present(&guesses, &one, "third", false), Err(Entrance::Limited(_))));
        tokio::time::advance(REFUSED_FOR).await;
        assert!(!matches!(present(&guesses, &one, "bad", false), Err(Entrance::Refused(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_that_no_one_guesses_do_not_count() {
        let guesses = guesses("1/1m");
        let one = address("2001:db8::1");
        for n in 0..10 {
            let Entrance::Verify(attempt) = guesses.enter(&one, &format!("expired {n}")) else { panic!() };
            guesses.conclude(&attempt, Err(&invalid().of_genuine_token()));
            let Entrance::Verify(attempt) = guesses.enter(&one, &format!("outage {n}")) else { panic!() };
            guesses.conclude(&attempt, Err(&Denied::unavailable("down")));
        }
        // accepted before, and revoked since
        assert!(present(&guesses, &one, "revoked", true).is_ok());
        assert!(present(&guesses, &one, "revoked", false).is_ok());
        assert!(present(&guesses, &address("2001:db8::ffff"), "guess", false).is_ok());
        let network = present(&guesses, &one, "another", false);
        assert!(matches!(network, Err(Entrance::Limited(_))), "the network counts");
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_at_the_same_time_do_not_get_around_the_rate() {
        let guesses = guesses("10/1m");
        let one = address("192.0.2.1");
        let (mut verifying, mut waiting) = (Vec::new(), Vec::new());
        for n in 0..1000 {
            match guesses.enter(&one, &format!("guess {n}")) {
                Entrance::Verify(attempt) => verifying.push(attempt),
                Entrance::Wait(attempt, turns) => waiting.push((attempt, turns)),
                _ => panic!("nothing was refused yet"),
            }
        }
        assert_eq!((verifying.len(), waiting.len()), (MAX_VERIFYING, 1000 - MAX_VERIFYING));
        for attempt in verifying {
            guesses.conclude(&attempt, Err(&invalid()));
        }
        for (attempt, turns) in waiting {
            assert!(guesses.wait(attempt, turns).await.is_err());
        }
    }

    #[test]
    fn a_flood_of_addresses_and_tokens_takes_no_memory() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let guesses = guesses("10/1m");
        for n in 0..40_000_u32 {
            let owner = Owner::address(std::net::Ipv4Addr::from(n).into());
            assert!(present(&guesses, &owner, &format!("token {n}"), n % 2 == 0).is_ok());
        }
        assert!(guesses.turns.lock().by_owner.len() <= 1024);
        assert!((1..=MAX_REFUSED).contains(&guesses.refused.lock().iter().count()));
        assert!((1..=MAX_MARKS).contains(&guesses.known.lock().iter().count()));
    }
}
