//! The optional observers of requests: the audit log and metrics; and the parents of spans.

#[cfg(feature = "audit")]
pub mod audit;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "otel")]
pub(crate) mod otel;
