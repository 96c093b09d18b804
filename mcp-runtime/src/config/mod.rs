//! Every bound and switch of a server, each with its default. Set through [`ServerBuilder`](super::ServerBuilder).

#[cfg(feature = "http")]
mod http;

use std::time::Duration;

#[cfg(feature = "http")]
pub(crate) use http::HttpOptions;

/// Beyond this nobody waits for anything, and the end of a time that is no longer can be told.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The bounds and switches of one server.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Entries on one page of a list.
    pub(crate) page_size: usize,
    /// Bytes of one line on stdio.
    pub(crate) max_line: usize,
    /// Calls that run at once on one connection.
    pub(crate) max_in_flight: usize,
    /// Requests that wait for a place among them.
    pub(crate) max_queued: usize,
    /// Bytes of requests that wait on one connection.
    pub(crate) max_queued_bytes: usize,
    /// How long calls may go on after the input has ended, or the process was told to stop, where that was set.
    pub(crate) drain: Option<Duration>,
    /// How long a client may take nothing of what is written to it.
    pub(crate) write_timeout: Duration,
    /// Of subscriptions.
    pub(crate) subscriptions: crate::events::SubscriptionLimits,
    /// How long clients of the stateless era may keep lists.
    pub(crate) list_ttl: Duration,
    /// Whether callers are told apart.
    pub(crate) authenticates: bool,
    /// What clients carry for us is sealed with these; read from the environment if they are not set.
    pub(crate) keys: Option<crate::crypto::KeyRing>,
    /// Calls that go on as tasks.
    pub(crate) tasks: crate::task::TaskOptions,
    /// Whether failures show their cause to the client.
    pub(crate) detailed_errors: bool,
    /// Whether the subscriber that `run` installs sends the events of calls to their clients.
    pub(crate) forward_events: bool,
    #[cfg(feature = "http")]
    pub(crate) http: HttpOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            page_size: 1000,
            max_line: 4 << 20,
            max_in_flight: 256,
            max_queued: 1024,
            max_queued_bytes: 16 << 20,
            drain: None,
            write_timeout: Duration::from_secs(30),
            subscriptions: crate::events::SubscriptionLimits::default(),
            list_ttl: Duration::ZERO,
            authenticates: false,
            keys: None,
            tasks: crate::task::TaskOptions::default(),
            detailed_errors: false,
            forward_events: false,
            #[cfg(feature = "http")]
            http: HttpOptions::default(),
        }
    }
}
