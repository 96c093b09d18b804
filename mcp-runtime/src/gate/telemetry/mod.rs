//! Telemetry of a server for operators: the duration and the outcome of each request, by OpenTelemetry's conventions for
//! MCP. Dispatch makes the spans, which are `tracing`'s; numbers go to the meter of OpenTelemetry (feature `otel`) and to a
//! registry that Prometheus reads (feature `metrics`). No name that a client made up reaches them.
//!
//! See [the conventions](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/).

#[cfg(any(feature = "otel", feature = "metrics"))]
mod observed_store;
#[cfg(feature = "otel")]
mod otel;
#[cfg(feature = "metrics")]
mod prometheus;

use std::{fmt, sync::Arc, time::Duration};

use crate::core::{connection::ClientConnection, store::Shared};

#[cfg(feature = "otel")]
pub(crate) use otel::{set_parent, set_remote_parent, trace_id};

/// In place of a method or an error that is not known in advance.
pub(crate) const OTHER: &str = "_OTHER";

/// Upper bounds of the buckets of durations, in seconds, as the conventions have them.
#[cfg(any(feature = "otel", feature = "metrics"))]
const BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The same for operations of a store, which is near.
#[cfg(any(feature = "otel", feature = "metrics"))]
const STORE_BUCKETS: [f64; 11] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.2, 0.5, 2.0];

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
    #[cfg(feature = "cli")]
    pub(crate) forward_events: bool,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: bool,
    #[cfg(feature = "metrics")]
    pub(crate) metrics_path: Option<String>,
    #[cfg(feature = "metrics")]
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

    /// Collects metrics for Prometheus, which [`Server::metrics`](crate::Server::metrics) writes.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// Collects metrics for Prometheus, and serves them over HTTP at this path, such as `/metrics`, beside the endpoint.
    ///
    /// Hosts are checked as for the endpoint, callers are not: every client that reaches the path may read them.
    #[cfg(feature = "metrics")]
    pub fn metrics_path(mut self, path: impl Into<String>) -> Self {
        self.metrics_path = Some(path.into());
        self.metrics()
    }

    /// Collects metrics for Prometheus, and serves them over HTTP at `/metrics` on an address of their own, for as long as
    /// the server is served over HTTP or stdio.
    ///
    /// Neither hosts nor callers are checked there.
    #[cfg(feature = "metrics")]
    pub fn metrics_address(mut self, address: impl Into<std::net::SocketAddr>) -> Self {
        self.metrics_address = Some(address.into());
        self.metrics()
    }
}

/// A request that has ended, as it is counted.
#[cfg_attr(
    not(any(feature = "otel", feature = "metrics")),
    expect(dead_code, reason = "nothing counts requests")
)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestEnd<'a> {
    /// One that the protocol defines, or [`OTHER`].
    pub(crate) method: &'static str,
    /// The tool, if there is one of that name.
    pub(crate) tool: Option<&'a str>,
    pub(crate) prompt: Option<&'a str>,
    pub(crate) event: Option<&'a str>,
    /// The URI of the resource, or its template.
    pub(crate) resource: Option<&'a str>,
    /// The wire's error code, `tool_error` or the reason.
    pub(crate) error: Option<&'a str>,
    pub(crate) reason: Option<&'static str>,
    /// The wire's error code.
    pub(crate) code: Option<&'a str>,
    pub(crate) revision: &'static str,
    pub(crate) network: Network,
    pub(crate) duration: Duration,
}

/// How a request reached the server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Network {
    /// `tcp` or `pipe`, if it is known.
    pub(crate) transport: Option<&'static str>,
    /// That of HTTP.
    pub(crate) version: Option<&'static str>,
}

impl Network {
    pub(crate) fn of(connection: Option<&dyn ClientConnection>) -> Self {
        Self {
            transport: connection.and_then(|connection| connection.transport()),
            version: connection.and_then(|connection| connection.http_head()).map(|head| head.version),
        }
    }

    /// The name of the application's protocol.
    pub(crate) fn protocol(self) -> Option<&'static str> {
        self.version.map(|_| "http")
    }
}

/// A task that has ended, as it is counted.
#[cfg_attr(
    not(any(feature = "otel", feature = "metrics")),
    expect(dead_code, reason = "nothing counts tasks")
)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskTotal<'a> {
    pub(crate) tool: &'a str,
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<&'a str>,
    pub(crate) reason: Option<&'static str>,
    pub(crate) duration: Duration,
}

/// Counts the requests of one server.
pub(crate) struct Telemetry {
    /// Whether spans have the arguments of tools.
    pub(crate) arguments: bool,
    #[cfg(feature = "metrics")]
    metrics: Option<prometheus::PrometheusMetrics>,
    #[cfg(feature = "otel")]
    instruments: otel::Instruments,
}

impl Telemetry {
    /// # Errors
    /// The registry cannot be made.
    pub(crate) fn new(options: &TelemetryOptions) -> Result<Self, String> {
        Ok(Self {
            arguments: options.arguments,
            #[cfg(feature = "metrics")]
            metrics: if options.metrics { Some(prometheus::PrometheusMetrics::new()?) } else { None },
            #[cfg(feature = "otel")]
            instruments: otel::Instruments::default(),
        })
    }

    /// Whether requests are counted.
    pub(crate) fn counts(&self) -> bool {
        #[cfg(feature = "metrics")]
        if self.metrics.is_some() {
            return true;
        }
        cfg!(feature = "otel")
    }

    /// A request has begun.
    pub(crate) fn begin(&self) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.begin();
        }
    }

    /// A request that has begun has ended.
    pub(crate) fn end(&self, request: &RequestEnd<'_>) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.end(request);
        }
        #[cfg(feature = "otel")]
        self.instruments.end(request);
        let _uncounted = request;
    }

    /// A session or a connection has ended.
    pub(crate) fn end_session(
        &self,
        transport: Option<&'static str>,
        revision: &'static str,
        lasted: Duration,
    ) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.end_session(transport, revision, lasted);
        }
        #[cfg(feature = "otel")]
        self.instruments.end_session(transport, revision, lasted);
        let _uncounted = (transport, revision, lasted);
    }

    /// A request was refused before its method was looked at; over HTTP with this status.
    pub(crate) fn refuse(&self, status: Option<u16>, reason: &'static str) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.refuse(status, reason);
        }
        #[cfg(feature = "otel")]
        self.instruments.refuse(status, reason);
        let _uncounted = (status, reason);
    }

    /// The same store, whose operations are counted if anything is.
    #[cfg_attr(
        not(any(feature = "otel", feature = "metrics")),
        expect(clippy::unused_self, reason = "nothing is counted")
    )]
    pub(crate) fn observe_store(self: &Arc<Self>, store: Arc<dyn Shared>) -> Result<Arc<dyn Shared>, String> {
        #[cfg(any(feature = "otel", feature = "metrics"))]
        if self.counts() {
            let (store, reached) = observed_store::ObservedStore::new(store, self.clone());
            #[cfg(feature = "metrics")]
            if let Some(metrics) = &self.metrics {
                metrics.watch_store(reached)?;
            }
            #[cfg(not(feature = "metrics"))]
            drop(reached);
            return Ok(Arc::new(store));
        }
        Ok(store)
    }

    /// An operation of the shared store has ended, with this name and outcome.
    #[cfg(any(feature = "otel", feature = "metrics"))]
    fn end_store_operation(&self, labels: [&'static str; 2], duration: Duration) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.end_store_operation(labels, duration);
        }
        #[cfg(feature = "otel")]
        self.instruments.end_store_operation(labels, duration);
    }

    /// A call continues as a task.
    pub(crate) fn begin_task(&self) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.begin_task();
        }
    }

    /// A task that has begun has ended.
    pub(crate) fn end_task(&self, task: &TaskTotal<'_>) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.end_task(task);
        }
        #[cfg(feature = "otel")]
        self.instruments.end_task(task);
        let _uncounted = task;
    }

    /// The metrics as text for Prometheus, if they are collected; `dropped`: lines of the audit log that were dropped.
    #[cfg(feature = "metrics")]
    pub(crate) fn metrics_text(&self, dropped: u64) -> Option<String> {
        self.metrics.as_ref().map(|metrics| metrics.to_text(dropped))
    }
}

/// Counts what an authorization server was asked.
#[cfg(feature = "auth")]
impl crate::auth::IssuerObserver for Telemetry {
    fn asked(&self, issuer: &str, question: &'static str, outcome: &'static str, duration: Duration) {
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.ask_issuer([issuer, question, outcome], duration);
        }
        #[cfg(feature = "otel")]
        self.instruments.ask_issuer([issuer, question, outcome], duration);
        let _uncounted = (issuer, question, outcome, duration);
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}
