//! Limits that clients share. Each limited resource has a quota, of which one owner may use a share, so that no client
//! exhausts what all of them need: [`Shares`] for what is held while something runs, [`Turns`] for what is waited for,
//! [`OwnedTable`] for what is kept until it expires, and [`Usage`] for tables that evict. [`Rate`] and
//! [`CallerConcurrency`] are what one caller may do, however little the others do.

mod call_limits;
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
pub(crate) use owned_table::{Full, OwnedEntry, OwnedTable};
pub(crate) use owner::Owner;
pub(crate) use quota::{HALF, Quota, Usage};
pub use rate::Rate;
pub(crate) use rate::{MAX_CALLERS, RateLimiter};
pub(crate) use shares::{Permit, Shares};
pub(crate) use turns::Turn;
pub(crate) use turns::Turns;
