//! Metrics in a registry of the crate `prometheus`, which writes them as text. The number of time series is bounded: names
//! that come after the first [`MAX_SERIES`] share one.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
    core::Collector,
};

use super::{BUCKETS, OTHER, RequestEnd};
use crate::sync::RwLock;

/// Combinations of labels of durations, at most.
const MAX_SERIES: usize = 2000;

/// The metrics of one server.
pub(super) struct PrometheusMetrics {
    registry: Registry,
    operations: HistogramVec,
    sessions: HistogramVec,
    active: IntGauge,
    refused: IntCounterVec,
    /// Those of `operations` that have series of their own, by the digests of their labels.
    series: RwLock<HashMap<u64, Histogram>>,
    hasher: RandomState,
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
            "error_type",
            "mcp_protocol_version",
            "network_transport",
        ];
        let sessions = HistogramOpts::new(
            "mcp_server_session_duration_seconds",
            "How long MCP sessions and connections lasted.",
        );
        let refused = Opts::new(
            "mcp_server_refused_requests_total",
            "HTTP requests that were refused before their method was looked at.",
        );
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
            refused: add(&registry, IntCounterVec::new(refused, &["http_response_status_code"])?)?,
            registry,
            series: RwLock::default(),
            hasher: RandomState::new(),
        })
    }

    pub(super) fn begin(&self) {
        self.active.inc();
    }

    pub(super) fn end(&self, request: &RequestEnd<'_>) {
        self.active.dec();
        let RequestEnd { method, revision, .. } = *request;
        let transport = request.transport.unwrap_or_default();
        let (tool, prompt) = (request.tool.unwrap_or_default(), request.prompt.unwrap_or_default());
        let error = request.error.unwrap_or_default();
        let seconds = request.duration.as_secs_f64();
        let labels = [method, tool, prompt, error, revision, transport];
        if self.observe(&labels, seconds) {
            return;
        }
        let bounded = |label: &str| if label.is_empty() { "" } else { OTHER };
        let labels = [method, bounded(tool), bounded(prompt), bounded(error), revision, transport];
        self.operations.with_label_values(&labels).observe(seconds);
    }

    pub(super) fn end_session(&self, transport: Option<&str>, revision: &str, lasted: Duration) {
        let labels = [revision, transport.unwrap_or_default()];
        self.sessions.with_label_values(&labels).observe(lasted.as_secs_f64());
    }

    pub(super) fn refuse(&self, status: u16) {
        self.refused.with_label_values(&[status.to_string()]).inc();
    }

    /// Adds a duration to the series of these labels; `false` if there are too many to make one.
    fn observe(&self, labels: &[&str; 6], seconds: f64) -> bool {
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
    use super::*;

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
                error: Some(&error),
                revision: "2026-07-28",
                transport: Some("tcp"),
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
