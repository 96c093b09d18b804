//! Change notifications: one hub for each server, with a filter and a bounded queue for each subscriber, independent of
//! transports.

mod change;
mod filter;
mod hub;
#[cfg(feature = "shared")]
mod missed;
#[cfg(feature = "tasks")]
mod subject;

pub(crate) use change::Change;
pub(crate) use filter::{Filter, ListChanges};
pub(crate) use hub::{Hub, Subscriber, SubscriptionLimits};
#[cfg(feature = "tasks")]
pub(crate) use subject::SubjectChange;
