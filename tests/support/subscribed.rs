//! Subscribers of `tracing` for one thread.

use tracing::{Dispatch, Subscriber, subscriber::DefaultGuard};

/// A subscriber of this thread, until it is dropped.
pub struct Subscribed {
    _subscriber: DefaultGuard,
    /// With a single dispatcher, `tracing` would ask the threads of other tests, which have none, whether to log.
    _other: Dispatch,
}

/// Makes it the subscriber of this thread.
#[must_use]
pub fn subscribe(subscriber: impl Subscriber + Send + Sync + 'static) -> Subscribed {
    let _other = Dispatch::new(tracing_subscriber::registry());
    Subscribed { _subscriber: tracing::subscriber::set_default(subscriber), _other }
}
