//! What a server keeps outside of its calls, behind traits, so that replicas can share it; and the server's own stores,
//! in memory, which are bounded.

#[cfg(feature = "http")]
mod event;
mod kept_result;
#[cfg(feature = "http")]
mod revocation;
mod single_use;

use std::pin::Pin;

pub use crate::capability::tasks::{MemoryTasks, TaskRecord, TaskStore};
#[cfg(feature = "http")]
pub(crate) use event::{EventBounds, MemoryEvents};
#[cfg(feature = "http")]
pub use event::{EventStore, StoredEvent};
pub(crate) use kept_result::{KeepResults, OpenResults, ResultReader};
pub use kept_result::{ResultRecord, ResultStore};
#[cfg(feature = "http")]
pub use revocation::RevocationStore;
pub use single_use::{ConsumedCall, SingleUse};
pub(crate) use single_use::{MAX_CALLS, MemorySingleUse};

/// What a [`TaskStore`] or a [`ResultStore`] gives: it may have to wait for a network.
pub type Stored<'a, T> = StoreFuture<'a, Result<T, Box<dyn std::error::Error + Send + Sync>>>;

/// What a method of a store returns: it may have to wait for a network, and is boxed so that the trait can be used as an
/// object.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
