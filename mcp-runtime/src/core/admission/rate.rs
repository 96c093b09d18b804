//! How often an owner may do something: a rate, and the limiter that holds all owners to it.
//!
//! The algorithm is the [generic cell rate algorithm](https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm): an owner
//! may use the whole rate at once, and then gets it back evenly. It needs one point in time for each owner, kept in a
//! table whose size never changes: of too many owners, those are forgotten that have used least, which are those with
//! the least to gain from it. So a flood of addresses costs neither memory nor gives an owner that used up its rate a
//! fresh start.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use tokio::time::Instant;

use super::{Owner, rate_syntax::parse_rate};
use crate::core::sync::Mutex;

/// How often something may be done in a period: all at once, and then as often as a part of it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    pub(crate) times: u32,
    pub(crate) period: Duration,
}

impl Rate {
    /// A rate of at least once, in a period between a millisecond and a year.
    #[must_use]
    pub fn new(times: u32, period: Duration) -> Self {
        Self { times: times.max(1), period: period.clamp(Duration::from_millis(1), MAX_PERIOD) }
    }

    /// The time in which one of them comes back.
    pub(crate) fn interval(self) -> Duration {
        (self.period / self.times).max(Duration::from_nanos(1))
    }

    /// The requests that a client may send at this rate, in words.
    pub(super) fn of_requests(&self) -> String {
        format!("{} in {}", count(self.times, "request"), in_words(self.period))
    }

    /// Reads `60/1m` or `5/s`: a whole number, and a time in `ms`, `s`, `m` or `h`.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (times, milliseconds) = parse_rate(text).ok_or_else(|| {
            format!(
                "`{text}` is not a rate\nwrite how often in which time: \"5/1s\", \"60/1m\" or \"1000/24h\""
            )
        })?;
        Ok(Self::new(times, Duration::from_millis(milliseconds)))
    }
}

/// Periods are at most a year, so that no sum of times overflows.
const MAX_PERIOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.times == 1 { "once" } else { &format!("{} times", self.times) };
        write!(f, "{times} in {}", in_words(self.period))
    }
}

/// A number of things: `1 hour`, `2 hours`.
pub(super) fn count(number: impl fmt::Display, singular: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {singular}{plural}")
}

/// A time as a model or user reads it: `1 minute 30 seconds`.
fn in_words(time: Duration) -> String {
    let short = humantime::format_duration(time).to_string();
    let words = short.split(' ').map(|part| {
        let unit = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = part.strip_suffix(unit).unwrap_or_default();
        let singular = match unit {
            "h" => "hour",
            "m" => "minute",
            "s" => "second",
            "ms" => "millisecond",
            longer => longer.trim_end_matches('s'),
        };
        count(number, singular)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Callers that each rate remembers, with 16 bytes for each. Beyond that, those that have used least are forgotten.
pub(crate) const MAX_CALLERS: usize = 65_536;
/// Slots that are searched for one owner.
const BUCKET: usize = 8;
/// Locks, so that threads rarely wait for each other.
const SHARDS: usize = 16;

/// Holds every owner to a rate.
pub(crate) struct RateLimiter {
    rate: Rate,
    /// Nanoseconds after which an owner gets one time back.
    pub(super) interval: u64,
    /// Nanoseconds in which an owner gets all of them back.
    pub(super) window: u64,
    start: Instant,
    /// Keyed at random, so that no one can choose addresses that share a bucket.
    hasher: RandomState,
    shards: [Mutex<Vec<Slot>>; SHARDS],
}

/// An owner, and when it will have got everything back.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    /// A hash, or zero in an empty slot.
    pub(super) owner: u64,
    /// Nanoseconds after the limiter's start.
    pub(super) restored: u64,
}

impl RateLimiter {
    /// Remembers at least as many owners.
    pub(crate) fn new(rate: Rate, owners: usize) -> Self {
        let interval = u64::try_from(rate.interval().as_nanos()).unwrap_or(u64::MAX);
        let slots = owners.div_ceil(SHARDS).next_multiple_of(BUCKET).max(BUCKET);
        Self {
            rate,
            interval,
            window: interval * u64::from(rate.times),
            start: Instant::now(),
            hasher: RandomState::new(),
            // zeroed pages, which take memory only once they are written
            shards: std::array::from_fn(|_| Mutex::new(vec![Slot::default(); slots])),
        }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts one time of an owner.
    ///
    /// # Errors
    /// The owner has used up its rate, and has to wait for so long. Nothing was counted.
    pub(crate) fn take(&self, owner: &Owner) -> Result<(), Duration> {
        let now = self.now();
        self.in_bucket(owner, |bucket, owner| {
            let slot = find_slot(bucket, owner);
            *slot = Slot { owner, restored: self.after_next(*slot, now)? };
            Ok(())
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.since_start(Instant::now())
    }

    pub(super) fn since_start(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX / 2)
    }

    /// Looks at the slots where an owner may be, which is a hash there.
    pub(super) fn in_bucket<T>(&self, owner: &Owner, look: impl FnOnce(&mut [Slot], u64) -> T) -> T {
        let hash = self.hasher.hash_one(owner);
        // the parts of the hash that choose the shard and the bucket overlap little
        let mut slots = self.shards[(hash >> 60) as usize % SHARDS].lock();
        let buckets = slots.len() / BUCKET;
        let bucket = usize::try_from((hash & 0xFFFF_FFFF) % buckets as u64).unwrap_or(0) * BUCKET;
        look(&mut slots[bucket..bucket + BUCKET], hash.max(1))
    }

    /// When an owner will have got everything back, if it does it once more.
    ///
    /// # Errors
    /// It has used up its rate, and has to wait for so long.
    pub(super) fn after_next(&self, slot: Slot, now: u64) -> Result<u64, Duration> {
        let restored = slot.restored.max(now) + self.interval;
        match (restored - now).checked_sub(self.window) {
            None | Some(0) => Ok(restored),
            Some(wait) => Err(Duration::from_nanos(wait)),
        }
    }

    /// Bytes of its table.
    #[cfg(test)]
    fn size(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().capacity() * size_of::<Slot>()).sum()
    }
}

/// The slot of an owner; if it has none, that of the owner which needs it least, emptied.
pub(super) fn find_slot(bucket: &mut [Slot], owner: u64) -> &mut Slot {
    let index = bucket.iter().position(|slot| slot.owner == owner).unwrap_or_else(|| {
        let least =
            bucket.iter().enumerate().min_by_key(|(_, slot)| slot.restored).map_or(0, |(index, _)| index);
        bucket[least] = Slot::default();
        least
    });
    &mut bucket[index]
}

#[cfg(any(test, feature = "_fuzzing"))]
#[path = "tests/rates.rs"]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: impl fmt::Display) -> Owner {
        Owner::principal(name.to_string().into())
    }

    fn limiter(rate: &str, owners: usize) -> RateLimiter {
        RateLimiter::new(Rate::parse(rate).unwrap(), owners)
    }

    #[test]
    fn a_rate_is_a_number_and_a_time() {
        for (text, display) in [
            ("60/1m", "60 times in 1 minute"),
            ("2/90s", "2 times in 1 minute 30 seconds"),
            ("5/s", "5 times in 1 second"),
            ("1/250ms", "once in 250 milliseconds"),
            ("1000/24h", "1000 times in 1 day"),
        ] {
            assert_eq!(Rate::parse(text).unwrap().to_string(), display);
        }
        for text in ["", "0/1m", "60/1d"] {
            assert!(Rate::parse(text).unwrap_err().contains("is not a rate"), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_whole_rate_may_be_used_at_once_and_comes_back_evenly() {
        let (limiter, ada) = (limiter("4/1m", 100), owner("ada"));
        for _ in 0..4 {
            assert_eq!(limiter.take(&ada), Ok(()));
        }
        assert_eq!(limiter.take(&ada), Err(Duration::from_secs(15)));
        assert_eq!(limiter.take(&owner("bob")), Ok(()), "another owner is not affected");
        tokio::time::advance(Duration::from_secs(14)).await;
        assert_eq!(limiter.take(&ada), Err(Duration::from_secs(1)), "what is refused is not counted");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((limiter.take(&ada), limiter.take(&ada)), (Ok(()), Err(Duration::from_secs(15))));
        tokio::time::advance(Duration::from_secs(3600)).await;
        let taken = (0..10).take_while(|_| limiter.take(&ada).is_ok()).count();
        assert_eq!(taken, 4, "no more than the rate is saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn extreme_rates_are_held() {
        let often = limiter("4294967295/1ms", 10);
        assert!((0..1000).all(|_| often.take(&owner("ada")).is_ok()));
        let rarely = limiter("1/8760h", 10);
        assert_eq!(rarely.take(&owner("ada")), Ok(()));
        assert_eq!(rarely.take(&owner("ada")), Err(MAX_PERIOD));
        let longer = limiter("1/1000000000h", 10);
        assert_eq!((longer.take(&owner("ada")), longer.take(&owner("ada"))), (Ok(()), Err(MAX_PERIOD)));
    }

    #[test]
    fn a_flood_of_owners_takes_no_memory_and_frees_no_one() {
        let (limiter, ada) = (limiter("3/1h", 1024), owner("ada"));
        let before = limiter.size();
        while limiter.take(&ada).is_ok() {}
        for key in 0..20_000 {
            assert!(limiter.take(&owner(key)).is_ok(), "a new owner is not refused for the others");
            if key % 1000 == 0 {
                assert!(limiter.take(&ada).is_err());
            }
        }
        assert!(limiter.take(&ada).is_err());
        assert_eq!(limiter.size(), before);
    }
}
