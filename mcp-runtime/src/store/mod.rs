//! What a server keeps outside of its calls, behind traits, so that replicas can share it.

#[cfg(feature = "http")]
mod event;

#[cfg(feature = "http")]
pub(crate) use event::EventBounds;
#[cfg(feature = "http")]
pub use event::{EventStore, StoredEvent};
