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

use crate::core::{config::TelemetryOptions, connection::ClientConnection, store::Shared};

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

    /// A request was refused before its method was examined; over HTTP with this status.
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

    /// The metrics as text for Prometheus, if they are collected.
    #[cfg(feature = "metrics")]
    pub(crate) fn metrics_text(&self) -> Option<String> {
        self.metrics.as_ref().map(|metrics| metrics.to_text())
    }
}

/// Counts what an authorization server was asked.
#[cfg(feature = "auth")]
impl crate::core::server::IssuerObserver for Telemetry {
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
