//! Metrics in a registry of the crate `prometheus`, which writes them as text. The number of time series is bounded: names
//! that come after the first [`MAX_SERIES`] share one.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, OnceLock},
    time::Duration,
};

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
    core::Collector,
};

use super::{BUCKETS, OTHER, RequestEnd, STORE_BUCKETS, TaskTotal, observed_store::Reached};
use crate::core::sync::RwLock;

/// Combinations of labels of durations, at most.
const MAX_SERIES: usize = 2000;

/// Labels of a duration.
const LABELS: usize = 11;

/// The metrics of one server.
pub(super) struct PrometheusMetrics {
    registry: Registry,
    operations: HistogramVec,
    sessions: HistogramVec,
    active: IntGauge,
    refused: IntCounterVec,
    tasks: HistogramVec,
    active_tasks: IntGauge,
    #[cfg(feature = "auth")]
    issuers: HistogramVec,
    /// The metrics of a store that replicas share.
    store: OnceLock<StoreMetrics>,
    /// The series of `operations`, by the digests of their labels.
    series: RwLock<HashMap<u64, Histogram>>,
    hasher: RandomState,
    /// Tools whose tasks have separate series.
    task_tools: RwLock<HashSet<String>>,
}

struct StoreMetrics {
    operations: HistogramVec,
    connected: IntGauge,
    reached: Arc<Reached>,
}

impl PrometheusMetrics {
    /// # Errors
    /// A metric has a wrong name, or one that another has.
    pub(super) fn new() -> Result<Self, String> {
        Self::register().map_err(|error| format!("the metrics cannot be registered: {error}"))
    }

    fn register() -> prometheus::Result<Self> {
        let registry = Registry::new();
        fn add<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> prometheus::Result<C> {
            registry.register(Box::new(metric.clone()))?;
            Ok(metric)
        }
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
        #[cfg(feature = "auth")]
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
            #[cfg(feature = "auth")]
            issuers: add(
                &registry,
                HistogramVec::new(issuers.buckets(BUCKETS.to_vec()), &["issuer", "question", "outcome"])?,
            )?,
            registry,
            store: OnceLock::new(),
            series: RwLock::default(),
            hasher: RandomState::new(),
            task_tools: RwLock::default(),
        })
    }

    /// Adds the metrics of the shared store.
    ///
    /// # Errors
    /// They were added before.
    pub(super) fn watch_store(&self, reached: Arc<Reached>) -> Result<(), String> {
        let register = || {
            let operations = HistogramOpts::new(
                "mcp_server_store_operation_duration_seconds",
                "How long operations of the shared store took.",
            );
            let operations =
                HistogramVec::new(operations.buckets(STORE_BUCKETS.to_vec()), &["operation", "outcome"])?;
            let connected =
                IntGauge::new("mcp_server_store_connected", "Whether the shared store can be reached.")?;
            self.registry.register(Box::new(operations.clone()))?;
            self.registry.register(Box::new(connected.clone()))?;
            prometheus::Result::Ok(StoreMetrics { operations, connected, reached })
        };
        let made = register().map_err(|error| format!("the metrics cannot be registered: {error}"))?;
        self.store.set(made).map_err(|_| "the metrics of the store were registered before".to_owned())
    }

    pub(super) fn end_store_operation(&self, labels: [&str; 2], duration: Duration) {
        if let Some(store) = self.store.get() {
            store.operations.with_label_values(&labels).observe(duration.as_secs_f64());
        }
    }

    pub(super) fn begin(&self) {
        self.active.inc();
    }

    pub(super) fn end(&self, request: &RequestEnd<'_>) {
        self.active.dec();
        let RequestEnd { method, revision, .. } = *request;
        let transport = request.network.transport.unwrap_or_default();
        let http = request.network.version.unwrap_or_default();
        let (tool, prompt) = (request.tool.unwrap_or_default(), request.prompt.unwrap_or_default());
        let (event, resource) = (request.event.unwrap_or_default(), request.resource.unwrap_or_default());
        let (error, code) = (request.error.unwrap_or_default(), request.code.unwrap_or_default());
        let reason = request.reason.unwrap_or_default();
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

    pub(super) fn end_session(&self, transport: Option<&str>, revision: &str, lasted: Duration) {
        let labels = [revision, transport.unwrap_or_default()];
        self.sessions.with_label_values(&labels).observe(lasted.as_secs_f64());
    }

    pub(super) fn refuse(&self, status: Option<u16>, reason: &str) {
        let status = status.map_or_else(String::new, |status| status.to_string());
        self.refused.with_label_values(&[status.as_str(), reason]).inc();
    }

    pub(super) fn begin_task(&self) {
        self.active_tasks.inc();
    }

    pub(super) fn end_task(&self, task: &TaskTotal<'_>) {
        self.active_tasks.dec();
        let TaskTotal { tool, outcome, error, reason, duration } = *task;
        // tools that exist may still be many, if they come and go
        let mut tools = self.task_tools.write();
        let tool = if tools.contains(tool) || (tools.len() < MAX_SERIES && tools.insert(tool.to_owned())) {
            tool
        } else {
            OTHER
        };
        drop(tools);
        // codes are the functions' own
        let error = error.unwrap_or_default();
        let error = if error.starts_with('-') || error.starts_with(|c: char| c.is_ascii_digit()) {
            "failed"
        } else {
            error
        };
        let labels = [tool, outcome, error, reason.unwrap_or_default()];
        self.tasks.with_label_values(&labels).observe(duration.as_secs_f64());
    }

    #[cfg(feature = "auth")]
    pub(super) fn ask_issuer(&self, labels: [&str; 3], duration: Duration) {
        self.issuers.with_label_values(&labels).observe(duration.as_secs_f64());
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

    pub(super) fn to_text(&self) -> String {
        if let Some(store) = self.store.get() {
            store.connected.set(store.reached.now().into());
        }
        let mut text = String::new();
        // only a metric without a value fails here, and there is none
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "the metrics could not be written");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Network, *};

    #[test]
    fn made_up_labels_do_not_grow_the_registry_without_bound() {
        let metrics = PrometheusMetrics::new().unwrap();
        for n in 0..3 * MAX_SERIES {
            let error = n.to_string();
            metrics.begin();
            metrics.end(&RequestEnd {
                method: "tools/call",
                tool: Some("one"),
                prompt: None,
                event: None,
                resource: None,
                error: Some(&error),
                reason: None,
                code: Some(&error),
                revision: "2026-07-28",
                network: Network { transport: Some("tcp"), version: Some("1.1") },
                duration: Duration::from_millis(1),
            });
        }
        let text = metrics.to_text();
        let series = text.lines().filter(|line| line.contains("_duration_seconds_count")).count();
        assert_eq!(series, MAX_SERIES + 1);
        assert!(text.contains(r#"error_type="_OTHER""#));
        assert!(text.contains("mcp_server_active_requests 0"), "each request has ended");
    }
}
