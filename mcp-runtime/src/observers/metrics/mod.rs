//! Metrics of a server for operators, by OpenTelemetry's conventions for MCP: in a registry of the crate `prometheus`, which
//! writes them as text. No name that a client made up reaches them, and the number of time series is bounded: names that
//! come after the first [`MAX_SERIES`] share one.
//!
//! See [the conventions](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/).

#[cfg(feature = "shared")]
mod observed_store;

use std::{
    any::Any,
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
    core::Collector,
};

use crate::core::{
    build_error::BuildError,
    config::{TelemetryOptions, http::is_path},
    connection::Principal,
    observer::{EndedRequest, EndedTask, OTHER, Observer, RefusedRequest},
    reason::Reason,
    server::{Server, ServerBuilder},
    sync::RwLock,
};

/// Upper bounds of the buckets of durations, in seconds, as the conventions have them.
const BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Combinations of labels of durations, at most.
const MAX_SERIES: usize = 2000;

/// Labels of a duration.
const LABELS: usize = 11;

/// The metrics of one server.
pub(crate) struct Metrics {
    registry: Registry,
    operations: HistogramVec,
    sessions: HistogramVec,
    active: IntGauge,
    refused: IntCounterVec,
    tasks: HistogramVec,
    active_tasks: IntGauge,
    issuers: HistogramVec,
    /// The series of `operations`, by the digests of their labels.
    series: RwLock<HashMap<u64, Histogram>>,
    hasher: RandomState,
    /// Tools whose tasks have separate series.
    task_tools: RwLock<HashSet<String>>,
}

impl Metrics {
    /// # Errors
    /// A metric has a wrong name, or one that another has.
    pub(crate) fn new() -> Result<Self, String> {
        Self::register().map_err(|error| format!("the metrics cannot be registered: {error}"))
    }

    fn register() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let operations = HistogramOpts::new(
            "mcp_server_operation_duration_seconds",
            "Time from the arrival of an MCP request until its result was ready.",
        );
        let labels = [
            "mcp_method_name",
            "gen_ai_tool_name",
            "gen_ai_prompt_name",
            "mcp_event_name",
            "mcp_resource_uri_template",
            "error_type",
            "mcp_error_reason",
            "rpc_response_status_code",
            "mcp_protocol_version",
            "network_transport",
            "network_protocol_version",
        ];
        let tasks = HistogramOpts::new(
            "mcp_server_task_duration_seconds",
            "Time from the creation of an MCP task until its end.",
        );
        let task_labels = ["gen_ai_tool_name", "mcp_task_outcome", "error_type", "mcp_error_reason"];
        let issuers = HistogramOpts::new(
            "mcp_server_authorization_duration_seconds",
            "Time that an authorization server took to answer for keys or about a token.",
        );
        let sessions = HistogramOpts::new(
            "mcp_server_session_duration_seconds",
            "How long MCP sessions and connections lasted.",
        );
        let refused = Opts::new(
            "mcp_server_refused_requests_total",
            "Requests that were refused before their method was looked at.",
        );
        let active_tasks = IntGauge::new("mcp_server_active_tasks", "MCP tasks that have not ended.")?;
        let active = IntGauge::new("mcp_server_active_requests", "MCP requests that are being answered.")?;
        Ok(Self {
            operations: add(&registry, HistogramVec::new(operations.buckets(BUCKETS.to_vec()), &labels)?)?,
            sessions: add(
                &registry,
                HistogramVec::new(
                    sessions.buckets(BUCKETS.to_vec()),
                    &["mcp_protocol_version", "network_transport"],
                )?,
            )?,
            active: add(&registry, active)?,
            refused: add(
                &registry,
                IntCounterVec::new(refused, &["http_response_status_code", "mcp_error_reason"])?,
            )?,
            tasks: add(&registry, HistogramVec::new(tasks.buckets(BUCKETS.to_vec()), &task_labels)?)?,
            active_tasks: add(&registry, active_tasks)?,
            issuers: add(
                &registry,
                HistogramVec::new(issuers.buckets(BUCKETS.to_vec()), &["issuer", "question", "outcome"])?,
            )?,
            registry,
            series: RwLock::default(),
            hasher: RandomState::new(),
            task_tools: RwLock::default(),
        })
    }

    /// Adds a duration to the series of these labels; `false` if there are too many to make one.
    fn observe(&self, labels: &[&str; LABELS], seconds: f64) -> bool {
        let digest = self.hasher.hash_one(labels);
        if let Some(histogram) = self.series.read().get(&digest) {
            histogram.observe(seconds);
            return true;
        }
        let mut series = self.series.write();
        if series.len() >= MAX_SERIES && !series.contains_key(&digest) {
            return false;
        }
        let histogram = series.entry(digest).or_insert_with(|| self.operations.with_label_values(labels));
        histogram.observe(seconds);
        true
    }

    /// All of them as text for Prometheus.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        // only a metric without a value fails here, and there is none
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "the metrics could not be written");
        }
        text
    }
}

impl ServerBuilder {
    /// Adds the metrics to the observers, if they are collected.
    pub(crate) fn add_metrics(&mut self) {
        let Self { options, observers, errors, .. } = self;
        if options.telemetry.metrics {
            match Metrics::new() {
                Ok(metrics) => observers.push(Arc::new(metrics)),
                Err(error) => errors.push(BuildError::new(error)),
            }
        }
        if let Some(path) = &options.telemetry.metrics_path {
            if options.http.paths().any(|known| known == path) {
                errors.push(BuildError::new(format!(
                    "`{path}` is the path of the metrics and of something else\nwrite another"
                )));
            } else if !is_path(path) {
                errors.push(BuildError::new(format!(
                    "`{path}` is not a path for the metrics\nwrite one such as `/metrics`"
                )));
            }
        }
    }
}

impl Server {
    /// The metrics in the text format of Prometheus, if they are
    /// [collected](crate::config::TelemetryOptions::metrics), for a program that serves them itself.
    #[must_use]
    pub fn metrics(&self) -> Option<String> {
        let metrics =
            |observer: &Arc<dyn Observer>| (&**observer as &dyn Any).downcast_ref().map(Metrics::to_text);
        self.observers().iter().find_map(metrics)
    }
}

fn add<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> prometheus::Result<C> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

impl Observer for Metrics {
    fn request_began(&self) {
        self.active.inc();
    }

    fn request_ended(&self, request: &EndedRequest<'_>) {
        self.active.dec();
        let EndedRequest { method, revision, item, .. } = *request;
        let transport = request.network.transport.unwrap_or_default();
        let http = request.network.version.unwrap_or_default();
        let name_of = |kind| item.name_of(kind).unwrap_or_default();
        let [tool, prompt, event, resource] = ["tool", "prompt", "event", "resource"].map(name_of);
        let (error, code) = (request.error.unwrap_or_default(), request.code.unwrap_or_default());
        let reason = request.reason.map_or("", Reason::as_str);
        let seconds = request.duration.as_secs_f64();
        let labels = [method, tool, prompt, event, resource, error, reason, code, revision, transport, http];
        if self.observe(&labels, seconds) {
            return;
        }
        let bounded = |label: &str| if label.is_empty() { "" } else { OTHER };
        let (tool, prompt) = (bounded(tool), bounded(prompt));
        let (event, resource) = (bounded(event), bounded(resource));
        let (error, code) = (bounded(error), bounded(code));
        let labels = [method, tool, prompt, event, resource, error, reason, code, revision, transport, http];
        self.operations.with_label_values(&labels).observe(seconds);
    }

    fn refused(&self, refused: &RefusedRequest, _: Option<&Principal>, _: Option<IpAddr>) {
        let status = refused.status.map_or_else(String::new, |status| status.to_string());
        self.refused.with_label_values(&[status.as_str(), refused.reason.as_str()]).inc();
    }

    fn task_began(&self) {
        self.active_tasks.inc();
    }

    fn task_ended(&self, task: &EndedTask<'_>) {
        self.active_tasks.dec();
        // tools that exist may still be many, if they come and go
        let mut tools = self.task_tools.write();
        let is_told_apart =
            tools.contains(task.tool) || (tools.len() < MAX_SERIES && tools.insert(task.tool.to_owned()));
        drop(tools);
        let tool = if is_told_apart { task.tool } else { OTHER };
        // codes are the functions' own
        let error = match task.error.unwrap_or_default() {
            code if code.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => "failed",
            error => error,
        };
        let labels = [tool, task.outcome.as_str(), error, task.reason.map_or("", Reason::as_str)];
        self.tasks.with_label_values(&labels).observe(task.duration.as_secs_f64());
    }

    fn session_ended(&self, transport: Option<&'static str>, revision: &'static str, lasted: Duration) {
        let labels = [revision, transport.unwrap_or_default()];
        self.sessions.with_label_values(&labels).observe(lasted.as_secs_f64());
    }

    #[cfg(feature = "shared")]
    fn watch_store(&self, store: Arc<dyn crate::core::store::Shared>) -> Arc<dyn crate::core::store::Shared> {
        self.observe_store(store.clone()).unwrap_or_else(|error| {
            tracing::error!(%error, "the operations of the shared store are not counted");
            store
        })
    }

    fn issuer_asked(&self, issuer: &str, question: &'static str, outcome: &'static str, duration: Duration) {
        let labels = [issuer, question, outcome];
        self.issuers.with_label_values(&labels).observe(duration.as_secs_f64());
    }
}

impl TelemetryOptions {
    /// Collects metrics for Prometheus, which [`Server::metrics`](crate::Server::metrics) writes.
    pub fn metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// Collects metrics for Prometheus, and serves them over HTTP at this path, such as `/metrics`, beside the endpoint.
    ///
    /// Hosts are checked as for the endpoint, callers are not: every client that reaches the path may read them.
    pub fn metrics_path(mut self, path: impl Into<String>) -> Self {
        self.metrics_path = Some(path.into());
        self.metrics()
    }

    /// Collects metrics for Prometheus, and serves them over HTTP at `/metrics` on an address of their own, for as long as
    /// the server is served over HTTP or stdio.
    ///
    /// Neither hosts nor callers are checked there.
    pub fn metrics_address(mut self, address: impl Into<std::net::SocketAddr>) -> Self {
        self.metrics_address = Some(address.into());
        self.metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        dispatch::ObservedItem,
        observer::{EndOutcome, Network},
    };

    #[test]
    fn made_up_labels_do_not_grow_the_registry_without_bound() {
        let metrics = Metrics::new().unwrap();
        for n in 0..MAX_SERIES + 100 {
            let error = n.to_string();
            metrics.request_began();
            metrics.request_ended(&EndedRequest {
                method: "tools/call",
                item: &ObservedItem::Unregistered,
                outcome: EndOutcome::Error,
                error: Some(&error),
                reason: None,
                code: Some(&error),
                task: None,
                revision: "2026-07-28",
                network: Network { transport: Some("tcp"), version: Some("1.1") },
                duration: Duration::from_millis(1),
                details: None,
            });
        }
        let text = metrics.to_text();
        let series = text.lines().filter(|line| line.contains("_duration_seconds_count")).count();
        assert_eq!(series, MAX_SERIES + 1);
        assert!(text.contains(r#"error_type="_OTHER""#));
        assert!(text.contains("mcp_server_active_requests 0"), "each request has ended");
    }
}
