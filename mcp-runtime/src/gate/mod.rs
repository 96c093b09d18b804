//! Optional code around calls: layers, the audit log, metrics, and parents of spans.

#[cfg(feature = "audit")]
pub mod audit;
pub mod layer;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "otel")]
pub(crate) mod otel;
