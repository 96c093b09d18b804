//! HTTP: one endpoint for every revision, as a tower service. The parts that only revisions before 2026-07-28
//! need are in [`legacy`]; the rest can be read without it.

mod accept;
mod added_routes;
#[cfg(feature = "auth")]
mod auth;
mod call_response;
mod cors;
mod cut_off;
mod endpoint;
mod guard;
mod header_params;
mod headers;
mod health;
mod http_error;
mod legacy;
#[cfg(feature = "metrics")]
mod metrics;
mod open_files;
#[cfg(feature = "server-card")]
mod public_documents;
mod request_body;
mod request_connection;
mod response_body;
mod serve;
mod service;
mod sse;
#[cfg(test)]
mod tests;

// the fuzz target of the client's encoder compares with it
pub use added_routes::{ClientAddress, RouteBody, RoutePolicy};
#[cfg(all(any(test, feature = "_fuzzing"), feature = "client"))]
pub(crate) use headers::decode_value;
pub use response_body::ResponseBody;
pub use service::HttpService;
