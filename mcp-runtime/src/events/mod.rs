//! Who wants to be told of which change, and what is still to be told: one hub for each server. The server's handle
//! publishes; connections, streams of events and dispatch follow. Nobody here knows how a message travels.

mod change;
mod filter;
mod hub;

pub(crate) use change::{Change, TaskChange, TaskView};
pub(crate) use filter::{Filter, ListChanges};
pub(crate) use hub::{Hub, Subscriber, SubscriptionLimits};
