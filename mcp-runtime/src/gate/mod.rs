//! Optional code around calls: each option names the code that implements it, so that a program without the option does
//! not contain the code.

pub mod audit;
pub mod layer;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(feature = "otel")]
pub(crate) mod otel;
