//! Bounds on what a server can make a client wait for, receive and keep, each with its default.

use std::time::Duration;

use crate::core::admission::Rate;

/// Bounds on what a server can make a client wait for, receive and keep; passed to
/// [`ClientBuilder::limits`](super::client_builder::ClientBuilder::limits).
///
/// ```no_run
/// use std::time::Duration;
///
/// use mcp_runtime::client::Client;
///
/// # async fn example() -> Result<(), mcp_runtime::client::Error> {
/// let client = Client::builder()
///     .timeout(Duration::from_secs(60))
///     .limits(|limits| limits.list_entries(1_000).sampling_rate("10/1m"))
///     .connect("https://example.com/mcp")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientLimits {
    pub(in crate::client) connect_timeout: Duration,
    pub(in crate::client) list_timeout: Duration,
    pub(in crate::client) list_bytes: usize,
    pub(in crate::client) list_entries: usize,
    pub(in crate::client) list_pages: usize,
    pub(in crate::client) call_bytes: usize,
    pub(in crate::client) input_requests: usize,
    pub(in crate::client) input_requests_per_call: usize,
    pub(in crate::client) server_requests: usize,
    pub(in crate::client) server_request_bytes: usize,
    pub(in crate::client) sampling_rate: Result<Rate, String>,
    pub(in crate::client) elicitation_rate: Result<Rate, String>,
}

impl ClientLimits {
    pub(in crate::client) fn new() -> Self {
        let sixty = Rate::new(60, Duration::from_secs(60));
        Self {
            connect_timeout: Duration::from_secs(5 * 60),
            list_timeout: Duration::from_secs(5 * 60),
            list_bytes: 16 << 20,
            list_entries: 100_000,
            list_pages: 10_000,
            call_bytes: 256 << 20,
            input_requests: 64,
            input_requests_per_call: 256,
            server_requests: 64,
            server_request_bytes: 16 << 20,
            sampling_rate: Ok(sixty),
            elicitation_rate: Ok(sixty),
        }
    }

    /// Sets the timeout of connecting, from starting the process or the first request to the end of the handshake, and of
    /// replacing a session or a process; five minutes by default. A user's login does not count.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets the timeout of a list with all its pages, unless the call overrides it; five minutes by default.
    pub fn list_timeout(mut self, limit: Duration) -> Self {
        self.list_timeout = limit;
        self
    }

    /// Sets how many bytes a list may have with all its pages, and how many bytes of lists of one kind are cached; 16 MiB
    /// by default.
    pub fn list_bytes(mut self, bytes: usize) -> Self {
        self.list_bytes = bytes;
        self
    }

    /// Sets how many entries a list may have with all its pages; 100,000 by default.
    pub fn list_entries(mut self, entries: usize) -> Self {
        self.list_entries = entries;
        self
    }

    /// Sets how many pages a list may have; 10,000 by default.
    pub fn list_pages(mut self, pages: usize) -> Self {
        self.list_pages = pages.max(1);
        self
    }

    /// Sets how many bytes the server may send for one call: its responses with all rounds and polls, and over HTTP the
    /// notifications on its event streams; 256 MiB by default.
    pub fn call_bytes(mut self, bytes: usize) -> Self {
        self.call_bytes = bytes;
        self
    }

    /// Sets how many requests for input one result may have, which are answered at once; 64 by default.
    pub fn input_requests(mut self, requests: usize) -> Self {
        self.input_requests = requests;
        self
    }

    /// Sets how many requests for input one call may have, with all its rounds and as a task; 256 by default.
    pub fn input_requests_per_call(mut self, requests: usize) -> Self {
        self.input_requests_per_call = requests;
        self
    }

    /// Sets how many requests of a legacy server are answered concurrently; 64 by default. Further requests are refused.
    pub fn server_requests(mut self, requests: usize) -> Self {
        self.server_requests = requests;
        self
    }

    /// Sets the total bytes of the requests of a legacy server that are answered concurrently; 16 MiB by default.
    pub fn server_request_bytes(mut self, bytes: usize) -> Self {
        self.server_request_bytes = bytes;
        self
    }

    /// Sets how often the server may ask for samples of the program's model: `"60/1m"`, which is the default, or another
    /// number and a time in `ms`, `s`, `m` or `h`. All of them may be used at once.
    ///
    /// [`connect`](super::client_builder::ClientBuilder::connect) fails if the text is not a valid rate.
    pub fn sampling_rate(mut self, rate: &str) -> Self {
        self.sampling_rate = Rate::parse(rate);
        self
    }

    /// Sets how often the server may ask the user, with forms and URLs together: `"60/1m"` by default, written as for
    /// [`sampling_rate`](Self::sampling_rate).
    pub fn elicitation_rate(mut self, rate: &str) -> Self {
        self.elicitation_rate = Rate::parse(rate);
        self
    }
}
