//! State that a server keeps outside of its calls: in memory, or in a store that replicas share. Both have the same
//! operations with the same limits, and values in a shared store are sealed.

#[cfg(all(not(feature = "shared"), any(feature = "events-webhook", feature = "tasks")))]
mod alone_records;
mod caller_rate;
mod found;
#[cfg(feature = "shared")]
mod log;
#[cfg(feature = "shared")]
mod memory_logs;
mod memory_tables;
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
mod records;
mod server_store;
#[cfg_attr(not(feature = "shared"), path = "alone.rs")]
mod shared;
mod single_use;
mod table;

#[cfg(feature = "shared")]
pub(crate) use self::{memory_logs::MemoryLogs, shared::Listener};
pub use crate::core::admission::Rate;
#[cfg(all(not(feature = "shared"), any(feature = "events-webhook", feature = "tasks")))]
pub(crate) use alone_records::NoMessages as Listener;
pub(crate) use caller_rate::CallerRate;
pub(crate) use found::Found;
#[cfg(feature = "shared")]
pub use log::{Append, Appended, LogEntry, LogPage};
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
pub(crate) use records::{Leases, Record, Records, Updated, Versioned, log_store_error};
pub(crate) use server_store::{SealedStore, StoreError};
#[cfg(feature = "redis")]
pub(crate) use shared::{MAX_MESSAGES, MAX_POSITION};
#[cfg(feature = "shared")]
pub use shared::{Memory, Publisher, Shared, Stored, Subscription, Take, Taken};
pub(crate) use single_use::{ConsumedCall, SingleUse};
pub use table::{Condition, Received, Table, Value, Write, Written};

/// The return type of a store's methods: they may have to wait for a network, and the future is boxed so that the trait can
/// be used as an object.
pub type StoreFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
