//! What operators and clients get to know of requests.

/// Options for the recording of requests and for the log messages that clients get; for
/// [`ServerBuilder::telemetry`](crate::ServerBuilder::telemetry).
///
/// Every request has a `tracing` span, named `mcp.server.request`, if the program's subscriber wants it. See
/// [the guide](crate::guide::telemetry).
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct TelemetryOptions {
    pub(crate) arguments: bool,
    /// Whether clients may get log messages.
    pub(crate) client_logging: bool,
    /// Whether the `tracing` subscriber that `run` installs sends the events of calls to their clients.
    pub(crate) forward_events: bool,
    pub(crate) metrics: bool,
    pub(crate) metrics_path: Option<String>,
    pub(crate) metrics_address: Option<std::net::SocketAddr>,
}

impl TelemetryOptions {
    /// Records the arguments of tools in their spans, as `gen_ai.tool.call.arguments`, but for those that are secret:
    /// `#[mcp(secret)]`, [`ToolBuilder::secret`](crate::tool::ToolBuilder::secret).
    pub fn arguments(mut self) -> Self {
        self.arguments = true;
        self
    }

    /// Lets functions send log messages to clients with [`Context::log`](crate::Context::log), and declares that: the
    /// wire's `logging` capability.
    ///
    /// The specification deprecates logging to clients from 2026-07-28 on, in favour of stderr and OpenTelemetry.
    pub fn client_logging(mut self) -> Self {
        self.client_logging = true;
        self
    }

    /// Lets `run` send the `tracing` events of a call to its client, if that has asked for log messages; switches
    /// [`client_logging`](Self::client_logging) on.
    ///
    /// Every event at level `DEBUG` or above that is recorded while a thread works for the call is sent, whichever crate it
    /// comes from, except those of `mcp_runtime` itself: see to it that no secret is in them. This is for programs
    /// without a `tracing` subscriber of their own; add `client_layer()` (feature `tracing`) to one's own.
    #[cfg(feature = "cli")]
    pub fn forward_events(mut self) -> Self {
        self.forward_events = true;
        self.client_logging()
    }
}
