//! Limits that clients share. Each limited resource has a [`Quota`], of which one [`Owner`] may use a share, so that no
//! client exhausts what all of them need. There are several types, since what happens beyond a limit differs:
//!
//! | type | of what | beyond the limit |
//! |---|---|---|
//! | [`Shares`] | what is held while something runs, waits or is open: requests, streams, bytes | it is refused at once: a client is told to try again |
//! | [`Turns`] | what may wait: threads, look-ups, attempts of webhooks, [`CallerPermits`] of packages | it waits, owner by owner |
//! | [`OwnedTable`] | what must not be forgotten before it expires: ended sessions, single-use values, tasks | a new one is refused; nothing is evicted |
//! | [`Usage`] | the count of a table that may forget: sessions' settings, event logs | the table evicts: of the owner that has used its share, else of the owner that uses most, and of that what is oldest |
//! | [`Rate`], by [`RateLimiter`] | what one caller may do in a time, however little the others do | it is refused with the time to wait; of too many callers, the limiter forgets those that have used least |
//! | [`CallerConcurrency`] | the calls that one caller may run at once | it is refused |
//!
//! `core/gates.rs` puts the last two in front of the calls of an item.

mod call_limits;
mod caller_permits;
#[cfg(any(feature = "auth", feature = "shared"))]
mod checked_rate;
mod owned_table;
mod owner;
mod quota;
mod rate;
mod rate_syntax;
#[cfg(feature = "shared")]
mod shared_rate;
mod shares;
mod turns;

pub(crate) use call_limits::whole_seconds;
pub(crate) use call_limits::{CallerConcurrency, LimitReached, RateReached};
pub use caller_permits::{CallerPermit, CallerPermits};
pub(crate) use owned_table::{Full, OwnedEntry, OwnedTable};
pub(crate) use owner::Owner;
pub(crate) use quota::{HALF, Quota, Usage};
pub use rate::Rate;
pub(crate) use rate::{MAX_CALLERS, RateLimiter};
pub(crate) use shares::{Permit, Shares};
pub(crate) use turns::Turn;
pub(crate) use turns::Turns;
