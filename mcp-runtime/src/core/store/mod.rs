//! State that a server keeps outside of its calls: in memory, or in a store that replicas share. Both implement the same
//! trait with the same limits, and values in a shared store are sealed.

mod caller_rate;
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
mod lease;
mod memory;
mod memory_logs;
#[cfg(any(feature = "events", feature = "shared", feature = "tasks"))]
mod messages;
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
mod records;
#[cfg(feature = "shared")]
mod sealed;
mod server_store;
mod shared;
mod single_use;

use std::pin::Pin;

pub use crate::core::admission::Rate;
pub(crate) use caller_rate::{CallerRate, RateStore};
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
pub(crate) use lease::Leases;
pub use memory::Memory;
pub(crate) use memory_logs::MemoryLogs;
#[cfg(any(feature = "events", feature = "shared", feature = "tasks"))]
pub(crate) use messages::Listener;
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
pub(crate) use records::{Record, Records, Updated, Versioned};
pub(crate) use server_store::{Found, SealedStore, StoreError};
pub use shared::{
    Append, Appended, Condition, LogEntry, LogPage, Publisher, Received, Shared, Subscription, Table, Take,
    Taken, Value, Write, Written,
};
pub(crate) use shared::{MAX_MESSAGES, MAX_POSITION};
pub(crate) use single_use::{ConsumedCall, SingleUse};

/// The result of an operation of a store, which may have to wait for a network.
pub type Stored<'a, T> = StoreFuture<'a, Result<T, Box<dyn std::error::Error + Send + Sync>>>;

/// The return type of a store's methods: they may have to wait for a network, and the future is boxed so that the trait can
/// be used as an object.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
